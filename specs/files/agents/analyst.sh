# The analyst: what was sold where, of data that somebody else collected and a third one has looked at.
set -eu
cd "$SWARM_WORKSPACE"
echo '{"state": "running", "started": null, "error": null}' > status.json
mkdir outbox/regions
{
    printf '# Sales by region\n\n'
    sed -n 's/.*"region": "\([^"]*\)", "amount": \([0-9.]*\).*/\1 \2/p' inbox/source_data/data.json | sort |
        awk '
            { sum[$1] += $2; if (!($1 in seen)) { seen[$1] = 1; names[++count] = $1 } }
            END {
                for (i = 1; i <= count; i++) {
                    printf "- %s: %.2f\n", names[i], sum[names[i]]
                    printf "%.2f\n", sum[names[i]] > ("outbox/regions/" names[i] ".txt")
                }
            }
        '
    printf '\nChecked: %s\n' "$(cat inbox/checks/verdict.json)"
} > outbox/report.md
echo "Sales of $(ls outbox/regions | wc -l | tr -d ' ') regions, from $(cut -c3- inbox/source_data/sources.md | tail -n 1)." \
    > outbox/summary.md
echo '{"state": "completed", "started": null, "error": null}' > status.json
