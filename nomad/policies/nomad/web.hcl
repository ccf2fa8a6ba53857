# The management side shows jobs, their allocations and their logs, restarts and drains
# replicas, and sets how many gateways, schedulers and processes of its own there are:
# alloc-lifecycle is to restart and to stop an allocation, scale-job to change a count.
namespace "topsail" {
  capabilities = ["list-jobs", "read-job", "read-logs", "alloc-lifecycle", "scale-job"]
}
