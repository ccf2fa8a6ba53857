import {to} from './router.svelte'

// addressOf is the page of an object, as audit entries and alarms name it, or nothing.
export function addressOf(kind: string | undefined, name: string | undefined): string {
  if (!name) return ''
  switch (kind) {
    case 'app':
    case 'learned':
      return to('app', {app: name})
    case 'model':
      return to('model', {model: name})
    case 'version': {
      const cut = name.indexOf(':')
      return cut < 0 ? '' : to('version', {model: name.slice(0, cut), version: name.slice(cut + 1)})
    }
    case 'replica':
      return to('replica', {replica: name})
    case 'key':
      return to('keys')
    case 'stream':
      return to('streams', {}, {q: name})
    case 'role':
    case 'server':
      return to('cluster')
    default:
      return ''
  }
}
