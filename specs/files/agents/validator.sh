# The schema validator: says of the data set whether every order can be what it says.
set -eu
cd "$SWARM_WORKSPACE"
echo '{"state": "running", "progress": {"current_step": "counting", "steps_completed": 0, "total_steps": 1}}' > status.json
negative=$(grep -c '"amount": -' inbox/source_data/data.json || true)
orders=$(grep -c '"id":' inbox/source_data/data.json || true)
printf '{"valid": %s, "orders": %s, "negative": %s}\n' "$([ "$negative" = 0 ] && echo true || echo false)" "$orders" "$negative" \
    > outbox/verdict.json
echo "$orders orders are as they should be, $negative are not." > outbox/summary.md
echo '{"state": "completed", "metrics": {"orders": '"$orders"'}}' > status.json
