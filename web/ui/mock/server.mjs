// The mock: the pages that were built, and an API that behaves like Topsail's. It is for
// the development and the tests of the pages only.
import {createReadStream, existsSync, statSync} from 'node:fs'
import {createServer} from 'node:http'
import {extname, join, normalize} from 'node:path'
import {Followers} from './events.mjs'
import {logs} from './logs.mjs'
import {parts} from './parts.mjs'
import {Problem, routes} from './routes.mjs'
import * as seed from './seed.mjs'
import {World} from './world.mjs'

const dist = join(import.meta.dirname, '..', 'dist')
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
// As ui.go has it: what breaks it there shall break it here.
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
const cookie = 'topsail_session'

export function start({port = 0, size = 'small', secured = false, mode = 'cluster'} = {}) {
  const world = new World()
  world.mode = mode
  world.secured = secured
  seed[size](world)
  const followers = new Followers(world)
  const table = compiled(routes(world))
  let broken = '' // a path whose requests fail, to see how pages take it

  const server = createServer(async (req, res) => {
    const url = new URL(req.url, 'http://mock')
    const bytes = await read(req)
    if (url.pathname === '/' || url.pathname === '/ui') return res.writeHead(302, {Location: '/ui/'}).end()
    if (url.pathname.startsWith('/ui/')) return page(url.pathname.slice(4), res)
    if (url.pathname.startsWith('/mock/')) {
      const [, , what, arg] = url.pathname.split('/')
      if (what === 'drop') followers.drop(Number(arg))
      if (what === 'break') broken = decodeURIComponent(arg ?? '')
      if (what === 'kill') world.die(decodeURIComponent(arg))
      return answer(res, 200, {mock: true})
    }
    if (!url.pathname.startsWith('/api/v1/'))
      return answer(res, 404, {type: 'about:blank', title: 'Not found', status: 404, detail: 'There is nothing here.'})
    const path = url.pathname.slice(7)
    try {
      if (broken && path.startsWith(broken))
        throw new Problem(503, 'Unavailable', 'Redis does not answer. See whether it runs, then try again.', 'unavailable')
      await api(req, res, path, url.searchParams, bytes)
    } catch (err) {
      if (!(err instanceof Problem)) console.error(err)
      const status = err.status ?? 500
      answer(
        res,
        status,
        {type: 'about:blank', title: err.title ?? 'Error', status, detail: err.message, code: err.code},
        'application/problem+json',
      )
    }
  })

  function caller(req) {
    if (!world.secured) return {name: 'local', role: 'admin'}
    const given = /topsail_session=([^;]+)/.exec(req.headers.cookie ?? '')?.[1] ?? req.headers['x-api-key']
    const id = [...world.secrets].find(([, secret]) => secret === given)?.[0]
    return id && world.keys.get(id)
  }

  const meOf = (key) => ({
    name: key.name,
    role: key.role,
    ...(key.apps && {apps: key.apps}),
    keys: world.secured,
    mode: world.mode,
    version: '0.5.0',
    gateway: 'http://gateway.models.example:1337',
  })

  async function api(req, res, path, q, bytes) {
    if (path === '/session' && req.method === 'POST') {
      const {key} = JSON.parse(bytes.toString())
      const id = [...world.secrets].find(([, secret]) => secret === key)?.[0]
      if (!id) throw new Problem(401, 'Unauthorised', 'No key has this secret. It may have been revoked, or have expired.', 'unauthorised')
      res.setHeader('Set-Cookie', `${cookie}=${key}; HttpOnly; SameSite=Strict; Path=/`)
      return answer(res, 200, meOf(world.keys.get(id)))
    }
    if (path === '/session') {
      res.setHeader('Set-Cookie', `${cookie}=; Max-Age=0; Path=/`)
      return res.writeHead(204).end()
    }
    const key = caller(req)
    if (!key) throw new Problem(401, 'Unauthorised', 'Show a key: sign in, or send X-Api-Key.', 'unauthorised')
    if (path === '/me') return answer(res, 200, meOf(key))
    if (path === '/events') return followers.add(world, meOf(key), res)
    const tried = /^\/apps\/([^/]+)\/try$/.exec(path)
    if (tried && world.apps.has(decodeURIComponent(tried[1])) && /text\/event-stream/.test(req.headers.accept))
      return parts(world, JSON.parse(bytes.toString()), res)
    for (const {method, pattern, names, run} of table) {
      const found = method === req.method && pattern.exec(path)
      if (!found) continue
      const args = Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])]))
      const json = /json/.test(req.headers['content-type'] ?? '') && bytes.length > 0
      const {status = 200, body, etag} = run({args, q, bytes, req, who: key.name, body: json ? JSON.parse(bytes.toString()) : undefined})
      if (etag) res.setHeader('ETag', etag)
      return body === undefined ? res.writeHead(status).end() : answer(res, status, body)
    }
    const followed = /^\/replicas\/([^/]+)\/logs$/.exec(path)
    const replica = followed && world.replicas.get(decodeURIComponent(followed[1]))
    if (replica) return logs(replica, q, res)
    throw new Problem(404, 'Not found', 'There is nothing here.', 'not_found')
  }

  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => {
      const url = `http://127.0.0.1:${server.address().port}`
      resolve({url, world, stop: () => (server.closeAllConnections(), server.close())})
    })
  })
}

function compiled(table) {
  return table.map(([method, path, run]) => {
    const names = []
    const pattern = path.replace(/:(\w+)/g, (_, name) => (names.push(name), '([^/]+)'))
    return {method, pattern: new RegExp(`^${pattern}$`), names, run}
  })
}

function page(path, res) {
  const wanted = join(dist, normalize('/' + path))
  const file = path && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(dist, 'index.html')
  res.writeHead(200, {
    'Content-Type': types[extname(file)] ?? 'application/octet-stream',
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
  })
  createReadStream(file).pipe(res)
}

function answer(res, status, body, type = 'application/json') {
  res.writeHead(status, {'Content-Type': type, 'Cache-Control': 'no-store'})
  res.end(JSON.stringify(body))
}

async function read(req) {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  return Buffer.concat(chunks)
}
