import {now} from './traffic.mjs'

// Followers are the open event streams.
export class Followers {
  #streams = new Set()
  refuseUntil = 0

  constructor(world) {
    for (const name of ['catalog', 'replicas', 'decision', 'audit', 'cluster']) world.on(name, (data) => this.#send(name, data))
    setInterval(() => {
      world.move()
      this.#send('traffic', now(world, Date.now() / 1000))
    }, 1000).unref()
    setInterval(() => this.#send('cluster', world.cluster()), 5000).unref()
  }

  add(world, me, res) {
    if (Date.now() < this.refuseUntil) {
      res.writeHead(503).end()
      return
    }
    res.writeHead(200, {'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store'})
    const say = (name, data) => res.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    say('hello', {me, revision: world.revision})
    say('catalog', world.wholeCatalog())
    say('replicas', {whole: true, changed: [...world.replicas.values()], gone: []})
    say('traffic', now(world, Date.now() / 1000))
    say('cluster', world.cluster())
    this.#streams.add(res)
    res.on('close', () => this.#streams.delete(res))
  }

  // drop cuts every stream, and refuses new ones for a while.
  drop(milliseconds) {
    this.refuseUntil = Date.now() + milliseconds
    for (const res of this.#streams) res.destroy()
  }

  #send(name, data) {
    const text = `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
    for (const res of this.#streams) res.write(text)
  }
}
