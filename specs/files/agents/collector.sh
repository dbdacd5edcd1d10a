# The data collector: orders as CSV become one JSON data set, with a page about where it comes from.
set -eu
cd "$SWARM_WORKSPACE"
began=$(date -u +%Y-%m-%dT%H:%M:%SZ)
status() {
    # Whoever looks meanwhile finds the old status or the new one, and none that is half written.
    cat > status.json.new
    mv status.json.new status.json
}
status <<END
{
  "state": "running", "started": "$began", "completed": null, "error": null,
  "progress": { "current_step": "reading_orders", "steps_completed": 0, "total_steps": 2 },
  "metrics": { "files_processed": 0 }
}
END

if ! head -n 1 inbox/orders.csv | grep -q '^id,region,amount$'; then
    cat > outbox/error_report.md <<END
# Error Report

## Error Type
ValidationError

## Description
\`inbox/orders.csv\` does not begin with the columns id, region and amount.

## Attempted Recovery
None: columns are not guessed.

## Suggested Resolution
Provide the orders as CSV with columns: id, region, amount

## Partial Work
None.
END
    status <<END
{
  "state": "failed", "started": "$began", "completed": null,
  "error": {
    "type": "ValidationError", "message": "Input file format invalid",
    "details": "Expected the columns id,region,amount", "recoverable": true
  }
}
END
    exit 0
fi

# What is needed on the way lies in the private folder.
tail -n +2 inbox/orders.csv > workspace/orders
count=$(wc -l < workspace/orders | tr -d ' ')
awk -F, '
    BEGIN { printf "{\"orders\": [" }
    { printf "%s\n  {\"id\": %d, \"region\": \"%s\", \"amount\": %s}", (NR > 1 ? "," : ""), $1, $2, $3 + 0 }
    END { print "\n]}" }
' workspace/orders > outbox/data.json
printf '# Sources\n\n- `orders.csv`: %s orders, all of them kept\n' "$count" > outbox/sources.md
printf '# Changes\n\n- Read `orders.csv`, and wrote `data.json`.\n' > outbox/changelog.md
printf '{"orders": %s}\n' "$count" > outbox/metadata.json
echo "Collected $count orders from one file." > outbox/summary.md
status <<END
{
  "state": "completed", "started": "$began", "completed": "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "error": null,
  "progress": { "current_step": "done", "steps_completed": 2, "total_steps": 2 },
  "metrics": { "files_processed": 1, "outputs_generated": 2 }
}
END
