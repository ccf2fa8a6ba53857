// The schemas of web/api/openapi.yaml. test/types.test.ts holds the two together.

export type InputType = 'bytes' | 'integers' | 'floats' | 'doubles' | 'strings'
export type Role = 'query' | 'viewer' | 'operator' | 'deployer' | 'admin'
export type Series = (number | null)[]

export interface Page<T> {
  items: T[]
  next?: string
}

export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code?: string
}

export interface App {
  name: string
  description?: string
  input_type: InputType
  default_output?: string
  latency_slo_micros: number
  cold_start_micros?: number
  models?: string[]
  stages?: AppStage[]
  output_type?: '' | 'number' | 'label' | 'vector' | 'json'
  policy?: Policy
  weight?: number
  cache?: {off?: boolean; round?: number; ttl_micros?: number}
  example?: string
  require_key?: boolean
  limit?: Limit
  labels?: string[]
  origin?: 'file' | 'api'
}

export interface AppStage {
  name: string
  model: string
  after?: string[]
}

export interface Limit {
  per_second: number
  burst?: number
}

export interface Policy {
  kind?: string
  [option: string]: unknown
}

export interface Learned {
  app: string
  policy: string
  uid?: string
  context?: string
  steps: number
  loss: number
  regret: number
  note?: string
  models: {model: string; version: string; share: number; worth: number; judged: number; loss: number}[]
}

export interface Trial {
  status: number
  answer: unknown
  micros: number
  stages: {stage: string; micros: number}[]
  gateway?: string
}

export interface Model {
  name: string
  current: string
  serving: string
  previous?: string
  input_type?: InputType
  versions: string[]
  apps: string[]
}

export interface VersionName {
  version: string
}

export interface Scale {
  min?: number
  max: number
  metric?: '' | 'capacity' | 'concurrency' | 'rate'
  target?: number
  utilisation?: number
  idle_micros?: number
  step_up?: number
  step_down?: number
  cooldown_up_micros?: number
  cooldown_down_micros?: number
  dead_band?: number
}

export interface Pin {
  count: number
  until?: string
  reason?: string
}

export interface Version {
  model?: string
  version: string
  description?: string
  input_type?: InputType
  input_length?: number
  labels?: string[]
  replicas?: number
  scale?: Scale
  pin?: Pin
  batch?: {strategy?: '' | 'aimd' | 'quantile' | 'fixed'; max_size?: number; delay_micros?: number; pad?: boolean}
  stages?: VersionStage[]
  host?: {memory_mb: number}
  hosted_by?: string
  resources?: {cpu?: number; memory_mb?: number; gpu?: {count?: number; device?: string; memory_mb?: number; runtime?: string}}
  bundle?: string
  bundle_url?: string
  command?: string[]
  dir?: string
  env?: Record<string, string>
  watch?: string[]
  container_addr?: string
  container_port?: number
  protocol?: '' | 'v1' | 'v2'
  connections?: number
  driver?: '' | 'raw_exec' | 'exec' | 'docker'
  image?: string
  artifacts?: {source: string; checksum: string; destination?: string}[]
  secrets?: Record<string, string>
  prepared?: boolean
  origin?: 'file' | 'api'
  generation?: string
  deployed?: Deployed
  current?: boolean
  serving?: boolean
  used_by?: string[]
  example?: string
  performance?: Performance
}

export interface Deployed {
  by: string
  at: string
  client?: string
  commit?: string
}

export interface Performance {
  since: string
  answers: number
  errors?: number
  batches: number
  batch_mean?: number
  p50_micros?: number
  p99_micros?: number
  throughput?: number
}

export interface VersionStage {
  name: string
  after?: string[]
  code?: string
  workers?: number
  cpus?: number[]
  batch?: {strategy?: '' | 'none' | 'aimd' | 'quantile' | 'fixed'; max_size?: number; delay_micros?: number; pad?: boolean}
  idempotent?: boolean
}

export interface Job {
  text: string
  kind: 'nomad' | 'process'
  plan?: string
}

export type ReplicaState = 'starting' | 'ready' | 'ejected' | 'draining' | 'failed' | 'stopped'

export interface Replica {
  id: string
  model: string
  version: string
  state: ReplicaState
  reason?: string
  node?: string
  allocation?: string
  pid?: number
  restarts?: number
  since?: string
  in_flight?: number
  latency_micros?: number
  queue_length?: number
  wait_micros?: number
  batch_limit?: number
  batch_mean?: number
  answers?: number
  profile?: {size: number; micros: number}[]
  stages?: StageTraffic[]
}

export interface Artifact {
  digest: string
  size: number
  created: string
  manifest: Manifest
  used_by: string[]
}

export interface Manifest {
  format: 1
  runtime: string
  python?: string
  requirements?: string[]
  entry?: string
  input_type?: InputType
  input_length?: number
  example?: unknown
  description?: string
  options?: Record<string, string>
  files: Record<string, {sha256: string; size: number}>
}

export interface Decision {
  model: string
  version: string
  at: string
  from: number
  to: number
  rule: string
  reason: string
  outcome: string
  error?: string
  leader?: string
  fence?: number
}

export interface Pool {
  model: string
  version: string
  desired: number
  ready: number
  demand?: number
  capacity?: number
  blocked_seconds?: number
  alarm?: boolean
  problem?: boolean
  pin?: Pin
  last?: Decision
}

export interface Scheduler {
  leader: string
  dry_run: boolean
  demand_unknown_seconds?: number
  pools: Pool[]
}

export type Health = 'ok' | 'warn' | 'failed' | 'unknown'

export interface Process {
  role: 'gateway' | 'scheduler' | 'web' | 'stream' | 'local'
  name: string
  addr?: string
  state: 'ok' | 'warn' | 'failed'
  detail?: string
  leader?: boolean
  revision?: number
}

export interface Server {
  name: string
  state: Health
  detail: string
  next?: string
  checked?: string
}

export interface Alarm {
  severity: 'warn' | 'failed'
  text: string
  next?: string
  kind?: 'app' | 'model' | 'version' | 'replica' | 'stream' | 'server'
  name?: string
}

export interface Cluster {
  mode: 'local' | 'cluster'
  version?: string
  processes: Process[]
  servers: Server[]
  alarms: Alarm[]
}

export interface Traffic {
  at: string
  window_seconds: number
  apps: AppTraffic[]
}

export interface AppTraffic {
  app: string
  slo_micros: number
  rate: number
  attainment: number
  defaults: number
  p50_micros?: number
  p99_micros?: number
  cache_hits?: number
  causes?: Record<string, number>
}

export interface Figures {
  usage: number
  cached: number
  failed: number
  missed: number
  total_micros: number
  mean_micros?: number
  min_micros?: number
  max_micros?: number
  last_failure?: {at: string; cause: string; message?: string}
}

export interface Usage extends Figures {
  kind: 'app' | 'version'
  app?: string
  model?: string
  version?: string
  description?: string
  policy?: string
  latency_slo_micros?: number
  candidates?: string[]
  since?: string
  stages?: StageUsage[]
}

export interface StageUsage extends Figures {
  stage: string
  model?: string
}

export interface AppSeries {
  app: string
  slo_micros: number
  step_seconds: number
  times: number[]
  rate: Series
  attainment: Series
  p50_micros: Series
  p99_micros: Series
  cache_hits?: Series
  causes: Record<string, Series>
}

export interface VersionSeries {
  model: string
  version: string
  step_seconds: number
  times: number[]
  demand: Series
  capacity: Series
  desired: Series
  ready: Series
  decisions: Decision[]
}

export interface VersionStages {
  model: string
  version: string
  at: string
  window_seconds: number
  bottleneck?: string
  stages: StageTraffic[]
}

export interface StageTraffic {
  stage: string
  after: string[]
  workers: number
  ready: number
  waiting: number
  rate?: number
  busy?: number
  batch_mean?: number
  wait_micros?: number
  wait_p99_micros?: number
  run_micros?: number
  run_p99_micros?: number
  ended?: Record<string, number>
}

export interface Rehearsal {
  dry_run: true
  changes: ObjectChange[]
  effects: string[]
}

export interface ObjectChange {
  action: 'create' | 'update' | 'delete'
  kind: 'app' | 'model' | 'version' | 'stream' | 'key'
  name: string
  before?: object
  after?: object
}

export type AuditKind = 'app' | 'model' | 'version' | 'replica' | 'artifact' | 'backup' | 'key' | 'learned' | 'stream'

export interface AuditEntry {
  id: string
  at: string
  who: string
  from?: string
  action: string
  kind: AuditKind
  name: string
  before?: object
  after?: object
  revision?: number
}

export interface NewKey {
  name: string
  role: Role
  apps?: string[]
  expires?: string
  limit?: Limit
}

export interface Key {
  id: string
  name: string
  role: Role
  apps?: string[]
  created: string
  expires?: string
  limit?: Limit
  secret?: string // where it is made
}

export interface Stream {
  name: string
  kind: 'data' | 'model'
  app?: string
  input: string[]
  output: string
  dead_letter: string
  suspension?: Suspension
  now?: StreamNow
}

export interface StreamNow {
  processes: number
  lag_records?: number
  waiting_seconds?: number
  conditions: string[]
}

export interface Suspension {
  since: string
  by?: string
  reason?: string
}

export interface Me {
  name: string
  role: Role
  apps?: string[]
  keys: boolean
  mode: 'local' | 'cluster'
  version: string
  gateway?: string
}

export interface Hello {
  me: Me
  revision: number
}

export interface CatalogEvent {
  revision: number
  whole?: boolean
  apps: App[]
  models: Model[]
  versions: Version[]
  gone: {kind: 'app' | 'model' | 'version'; name: string}[]
}

export interface ReplicasEvent {
  whole?: boolean
  changed: Replica[]
  gone: string[]
}
