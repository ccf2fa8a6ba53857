import type {InputType, Version} from '../api/types'
import {settings, split} from './command'

export type From = 'bundle' | 'command' | 'image' | 'host'

// Draft is a version while it is being described.
export interface Draft {
  version: string
  description: string
  from: From
  inputType: InputType | ''
  inputLength: number | null
  replicas: number
  labels: string
  bundle: string
  hostedBy: string // the model whose replicas hold it; empty: replicas of its own
  command: string
  dir: string
  env: string
  image: string
  hostCommand: string
  hostMemory: number // of a host's container with all that it holds, in MB
  cpu: number | null
  memory: number | null
}

export const blank: Draft = {
  version: '1',
  description: '',
  from: 'command',
  inputType: 'doubles',
  inputLength: null,
  replicas: 1,
  labels: '',
  bundle: '',
  hostedBy: '',
  command: '',
  dir: '',
  env: '',
  image: '',
  hostCommand: 'python3 -m topsail host',
  hostMemory: 512,
  cpu: null,
  memory: null,
}

// versionOf is what the draft describes. It throws where something cannot be read.
export function versionOf(draft: Draft): Version {
  const env = settings(draft.env)
  const labels = draft.labels
    .split(',')
    .map((label) => label.trim())
    .filter(Boolean)
  const resources = {...(draft.cpu && {cpu: draft.cpu}), ...(draft.memory && {memory_mb: draft.memory})}
  const hosted = draft.from === 'bundle' && draft.hostedBy !== ''
  return {
    version: draft.version.trim(),
    ...(draft.description.trim() && {description: draft.description.trim()}),
    ...(!hosted && {replicas: draft.replicas}),
    ...(draft.from !== 'host' && draft.inputType && {input_type: draft.inputType}),
    ...(draft.from !== 'host' && draft.inputLength && {input_length: draft.inputLength}),
    ...(labels.length > 0 && {labels}),
    ...source(draft),
    ...(!hosted && Object.keys(env).length > 0 && {env}),
    ...(!hosted && Object.keys(resources).length > 0 && {resources}),
  }
}

function source(draft: Draft): Partial<Version> {
  switch (draft.from) {
    case 'bundle':
      if (draft.bundle === '') throw new Error('Choose a bundle first: upload one, or take one that is there.')
      return {bundle: draft.bundle, ...(draft.hostedBy && {hosted_by: draft.hostedBy})}
    case 'host':
      return {host: {memory_mb: draft.hostMemory}, command: split(draft.hostCommand)}
    case 'image':
      return {driver: 'docker', image: draft.image.trim(), ...(draft.command.trim() && {command: split(draft.command)})}
    default: {
      const command = split(draft.command)
      if (command.length === 0) throw new Error('Write the command that serves the model.')
      return {command, ...(draft.dir.trim() && {dir: draft.dir.trim()})}
    }
  }
}

// nextVersion goes on counting, or begins.
export function nextVersion(versions: readonly string[]): string {
  const numbers = versions.map(Number).filter((n) => Number.isInteger(n) && n >= 0)
  return numbers.length === versions.length && numbers.length > 0 ? String(Math.max(...numbers) + 1) : versions.length === 0 ? '1' : ''
}
