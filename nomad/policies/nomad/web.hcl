# The management side shows jobs, their allocations and their logs.
namespace "topsail" {
  capabilities = ["list-jobs", "read-job", "read-logs"]
}
