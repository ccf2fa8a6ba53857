// Followers are the open event streams.
export class Followers {
  #streams = new Set()
  refuseUntil = 0

  constructor(world) {
    world.on('catalog', (notice) => this.#send('catalog', notice))
    for (const name of ['replicas', 'decision', 'audit', 'cluster']) world.on(name, () => this.#send(name, {}))
    setInterval(() => {
      world.move()
      this.#send('traffic', {})
    }, 1000).unref()
    setInterval(() => this.#send('cluster', {}), 5000).unref()
  }

  add(world, me, res) {
    if (Date.now() < this.refuseUntil) {
      res.writeHead(503).end()
      return
    }
    res.writeHead(200, {'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store'})
    res.write(`event: hello\ndata: ${JSON.stringify({me, revision: world.revision})}\n\n`)
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
