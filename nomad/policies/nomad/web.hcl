# The management side shows jobs, their allocations and their logs, and restarts and
# drains replicas: alloc-lifecycle is to restart and to stop an allocation.
namespace "topsail" {
  capabilities = ["list-jobs", "read-job", "read-logs", "alloc-lifecycle"]
}
