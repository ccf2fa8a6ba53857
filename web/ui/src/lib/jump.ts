import {to, type Router} from './router.svelte'

const places: Record<string, string> = {
  o: 'overview',
  m: 'models',
  r: 'replicas',
  s: 'scaling',
  t: 'streams',
  u: 'usage',
  c: 'cluster',
  a: 'audit',
  k: 'keys',
}
const patienceMs = 1200

// jumpKeys goes to a page after g and its letter, and to the search after a slash, until the function
// that it returns is called. Keys that belong to a field or a shortcut of the browser are left alone.
export function jumpKeys(router: Router): () => void {
  let begun = 0
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target) || document.querySelector('dialog[open]')) return
    if (event.key === '/') {
      event.preventDefault()
      document.getElementById('search')?.focus()
      return
    }
    const place = places[event.key]
    if (place && event.timeStamp - begun < patienceMs) {
      event.preventDefault()
      router.go(to(place))
    }
    begun = event.key === 'g' ? event.timeStamp : 0
  }
  addEventListener('keydown', onKey)
  return () => removeEventListener('keydown', onKey)
}

function writing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))
}
