# Schedulers run the jobs of model versions. submit-job is to register, plan, scale
# and stop them. Nomad has no finer rule than the namespace: who may submit one job
# there may stop every job there. So Topsail has a namespace of its own.
namespace "topsail" {
  capabilities = ["list-jobs", "read-job", "submit-job"]
}
