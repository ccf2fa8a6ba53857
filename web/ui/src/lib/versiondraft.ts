import type {InputType, Version} from '../api/types'
import {settings, split} from './command'

export type From = 'bundle' | 'command' | 'image'

// Draft is a version while it is being described.
export interface Draft {
  version: string
  from: From
  inputType: InputType | ''
  inputLength: number | null
  replicas: number
  labels: string
  bundle: string
  command: string
  dir: string
  env: string
  image: string
  cpu: number | null
  memory: number | null
}

export const blank: Draft = {
  version: '1',
  from: 'command',
  inputType: 'doubles',
  inputLength: null,
  replicas: 1,
  labels: '',
  bundle: '',
  command: '',
  dir: '',
  env: '',
  image: '',
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
  return {
    version: draft.version.trim(),
    replicas: draft.replicas,
    ...(draft.inputType && {input_type: draft.inputType}),
    ...(draft.inputLength && {input_length: draft.inputLength}),
    ...(labels.length > 0 && {labels}),
    ...source(draft),
    ...(Object.keys(env).length > 0 && {env}),
    ...(Object.keys(resources).length > 0 && {resources}),
  }
}

function source(draft: Draft): Partial<Version> {
  switch (draft.from) {
    case 'bundle':
      if (draft.bundle === '') throw new Error('Choose a bundle first: upload one, or take one that is there.')
      return {bundle: draft.bundle}
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
