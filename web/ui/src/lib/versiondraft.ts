import type {InputType, Version} from '../api/schema'
import {settings, split} from './command'
import {said} from './said'

export type From = 'bundle' | 'command' | 'image' | 'host' | 'service'
export type Strategy = NonNullable<NonNullable<Version['batch']>['strategy']>

export type Driver = NonNullable<Version['driver']>

export const blank = {
  version: '1',
  description: '',
  from: 'command' as From,
  inputType: 'doubles' as InputType | '',
  inputLength: null as number | null,
  scaled: false, // whether their number follows demand, from min to max
  replicas: 1,
  min: 1,
  max: 4,
  strategy: '' as Strategy,
  batchSize: null as number | null,
  batchDelayMs: null as number | null,
  pad: false, // of batches that are fixed
  labels: '',
  bundle: '',
  hostedBy: '', // the model whose replicas hold it; empty: replicas of its own
  command: '',
  dir: '',
  env: '',
  image: '',
  hostCommand: 'python3 -m topsail host',
  hostMemory: 512, // of a host's container with all that it holds, in MB
  instances: '', // of a service: its name in Consul, or addresses between commas
  protocol: 'oip' as NonNullable<Version['service']>['protocol'],
  serviceModel: '',
  cpu: null as number | null,
  memory: null as number | null,
  gpus: null as number | null,
  gpuMemory: null as number | null, // of each, in MB
  gpuDevice: '',
  driver: '' as Driver,
  secrets: '', // NAME=ITEM on each line
  artifacts: '', // [FOLDER=]CHECKSUM@URL on each line
}

// Draft is a version while it is being described.
export type Draft = typeof blank

// versionOf is what the draft describes. It throws where something cannot be read.
export function versionOf(draft: Draft): Version {
  const host = draft.from === 'host'
  return {
    version: draft.version.trim(),
    ...said({
      description: draft.description.trim(),
      labels: lines(draft.labels, ','),
    }),
    ...(!host && said({input_type: draft.inputType, input_length: draft.inputLength, batch: draft.from !== 'service' && batch(draft)})),
    ...source(draft),
    ...(ownReplicas(draft) && {...(!draft.scaled && {replicas: draft.replicas}), ...said({env: settings(draft.env), ...run(draft)})}),
  }
}

// ownReplicas says whether replicas of its own run it, and not those of a host, or others.
export function ownReplicas(draft: Draft): boolean {
  return draft.from !== 'service' && (draft.from !== 'bundle' || draft.hostedBy === '')
}

function source(draft: Draft): Partial<Version> {
  switch (draft.from) {
    case 'bundle':
      if (draft.bundle === '') throw new Error('Choose a bundle first: upload one, or take one that is there.')
      return {bundle: draft.bundle, ...(draft.hostedBy && {hosted_by: draft.hostedBy})}
    case 'host':
      return {host: {memory_mb: draft.hostMemory}, command: split(draft.hostCommand)}
    case 'service': {
      const names = lines(draft.instances, ',')
      const where = names.length === 1 && !names[0]?.includes(':') ? {name: names[0]} : {addrs: names}
      return {service: {protocol: draft.protocol, ...where, ...said({model: draft.serviceModel.trim()})}}
    }
    case 'image':
      return {image: draft.image.trim(), ...(draft.command.trim() && {command: split(draft.command)})}
    default: {
      const command = split(draft.command)
      if (command.length === 0) throw new Error('Write the command that serves the model.')
      return {command, ...(draft.dir.trim() && {dir: draft.dir.trim()})}
    }
  }
}

// run is how its replicas run.
function run(draft: Draft) {
  const gpu = draft.gpus ? said({count: draft.gpus, memory_mb: draft.gpuMemory, device: draft.gpuDevice.trim()}) : {}
  return {
    scale: draft.scaled && {min: draft.min, max: draft.max},
    resources: said({cpu: draft.cpu, memory_mb: draft.memory, gpu}),
    driver: driver(draft),
    secrets: settings(draft.secrets),
    artifacts: lines(draft.artifacts, '\n').map(artifact),
  }
}

// drivers are those that run what the draft is made from.
export function drivers(from: From): Driver[] {
  if (from === 'image') return ['docker']
  return from === 'bundle' ? ['raw_exec', 'exec', 'docker'] : ['raw_exec', 'exec']
}

function driver(draft: Draft): Driver {
  if (draft.from === 'image') return 'docker'
  return draft.driver && drivers(draft.from).includes(draft.driver) ? draft.driver : ''
}

function batch({strategy, batchSize, batchDelayMs, pad}: Draft) {
  if (strategy === 'fixed' && !batchSize) throw new Error('Say the size of batches that are fixed.')
  return said({
    strategy,
    max_size: batchSize,
    delay_micros: batchDelayMs && Math.round(batchDelayMs * 1000),
    pad: strategy === 'fixed' && pad,
  })
}

// artifact reads [FOLDER=]CHECKSUM@URL.
function artifact(line: string) {
  const found = /^(?:([^=@]+)=)?(sha(?:256|512):[^=@]+)@(\S+)$/.exec(line)
  if (!found)
    throw new Error(`"${line}" is not CHECKSUM@URL, such as sha256:…@https://models.example/weights.tar.gz. Write one on each line.`)
  const [, destination, checksum = '', source = ''] = found
  return {source, checksum, ...(destination && {destination})}
}

function lines(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((line) => line.trim())
    .filter(Boolean)
}

// nextVersion goes on counting, or begins.
export function nextVersion(versions: readonly string[]): string {
  const numbers = versions.map(Number).filter((n) => Number.isInteger(n) && n >= 0)
  return numbers.length === versions.length && numbers.length > 0 ? String(Math.max(...numbers) + 1) : versions.length === 0 ? '1' : ''
}

// otherLength is the refusal of a current version whose inputs have another length than its apps' clients send.
export const otherLength = {code: 'contract', anyway: 'Make it current all the same: clients of these apps must change what they send'}
