// The address of the page. Each segment of a route stands for itself, or, with a colon,
// for any one segment.

export interface Match {
  name: string
  args: Record<string, string>
}

const base = '/ui'

export const routes: Record<string, string> = {
  overview: '/',
  start: '/start',
  app: '/apps/:app',
  models: '/models',
  model: '/models/:model',
  version: '/models/:model/:version',
  replicas: '/replicas',
  replica: '/replicas/:replica',
  streams: '/streams',
  usage: '/usage',
  scaling: '/scaling',
  pool: '/scaling/:model/:version',
  cluster: '/cluster',
  audit: '/audit',
  keys: '/keys',
}

// matched finds the route of a path below the base, or none.
export function matched(pathname: string): Match | null {
  const given = segments(pathname)
  for (const [name, route] of Object.entries(routes)) {
    const args = fit(segments(route), given)
    if (args) return {name, args}
  }
  return null
}

function fit(route: string[], given: string[]): Record<string, string> | null {
  if (route.length !== given.length) return null
  const args: Record<string, string> = {}
  for (const [i, part] of route.entries()) {
    const segment = given[i] ?? ''
    if (!part.startsWith(':')) {
      if (part !== segment) return null
      continue
    }
    try {
      args[part.slice(1)] = decodeURIComponent(segment)
    } catch {
      return null // a stray percent sign
    }
  }
  return args
}

function segments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

// to writes the address of a page.
export function to(name: string, args: Record<string, string> = {}, query: Record<string, string | undefined> = {}): string {
  const route = routes[name]
  if (route === undefined) throw new Error(`There is no route ${name}.`)
  const filled = segments(route).map((part) => (part.startsWith(':') ? encodeURIComponent(args[part.slice(1)] ?? '') : part))
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value) search.set(key, value)
  }
  return `${base}/${filled.join('/')}${search.size > 0 ? `?${search}` : ''}`
}

export class Router {
  #pathname = $state(location.pathname)
  #search = $state(location.search)

  readonly match = $derived(matched(this.#pathname.slice(base.length)))
  readonly query = $derived(new URLSearchParams(this.#search))

  // listen follows the browser and the page's own links until the function that it
  // returns is called.
  listen(): () => void {
    const onMove = () => this.#read()
    const onClick = (event: MouseEvent) => this.#click(event)
    addEventListener('popstate', onMove)
    addEventListener('click', onClick)
    return () => {
      removeEventListener('popstate', onMove)
      removeEventListener('click', onClick)
    }
  }

  go(address: string) {
    if (address === location.pathname + location.search) return
    const samePage = address.split('?')[0] === location.pathname
    history.pushState(null, '', address)
    this.#read()
    if (!samePage) scrollTo(0, 0)
  }

  // amend changes some of the query, without a new entry in the history.
  amend(changes: Record<string, string | undefined>) {
    const query = new URLSearchParams(location.search)
    for (const [key, value] of Object.entries(changes)) {
      if (value) query.set(key, value)
      else query.delete(key)
    }
    history.replaceState(null, '', location.pathname + (query.size > 0 ? `?${query}` : ''))
    this.#read()
  }

  #read() {
    this.#pathname = location.pathname
    this.#search = location.search
  }

  #click(event: MouseEvent) {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const anchor = event.target instanceof Element ? event.target.closest('a') : null
    if (!anchor || anchor.target || anchor.hasAttribute('download') || anchor.origin !== location.origin) return
    if (!anchor.pathname.startsWith(base) || anchor.hash) return
    event.preventDefault()
    this.go(anchor.pathname + anchor.search)
  }
}
