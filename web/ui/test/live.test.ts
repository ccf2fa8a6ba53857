import {afterEach, beforeEach, describe, expect, it, vi} from 'vitest'
import type * as T from '../src/api/schema'
import {Live, type Reads} from '../src/lib/live.svelte'

class FakeEventSource {
  static last: FakeEventSource
  onerror: ((event: Event) => unknown) | null = null
  readonly #listeners = new Map<string, (event: MessageEvent<string>) => void>()

  constructor() {
    FakeEventSource.last = this
  }

  addEventListener(name: string, listener: (event: MessageEvent<string>) => void) {
    this.#listeners.set(name, listener)
  }

  close() {}

  say(name: string, data: object) {
    this.#listeners.get(name)?.({data: JSON.stringify(data)} as MessageEvent<string>)
  }
}

const app = {name: 'wine', input_type: 'doubles' as const, latency_slo_micros: 1000, models: ['m']}

describe('Live', () => {
  let live: Live
  let lost = 0
  const world = {apps: [app as T.App], models: [{name: 'm'} as T.Model], replicas: [] as T.Replica[], rate: 0, cluster: {} as T.Cluster}
  const asked: string[] = []
  let away = false
  const reading = async <V>(what: string, value: V): Promise<V> => {
    asked.push(what)
    if (away) throw new Error('away')
    return value
  }
  const reads: Reads = {
    client: {revision: 0},
    apps: () => reading('apps', world.apps),
    models: () => reading('models', world.models),
    versions: () => reading('versions', [{model: 'm', version: '1'} as T.Version]),
    appIfThere: (name) => reading(`app ${name}`, world.apps.find((one) => one.name === name) ?? null),
    modelIfThere: (name) => reading(`model ${name}`, world.models.find((one) => one.name === name) ?? null),
    versionsOf: (name) => reading(`versions of ${name}`, [{model: name, version: '2'} as T.Version]),
    replicas: () => reading('replicas', world.replicas),
    traffic: () => reading('traffic', {at: '', window_seconds: 60, apps: [{app: 'wine', slo_micros: 1, rate: world.rate}]} as T.Traffic),
    cluster: () => reading('cluster', world.cluster),
  }
  const say = (name: string, data: object) => FakeEventSource.last.say(name, data)
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms)

  beforeEach(async () => {
    vi.useFakeTimers()
    lost = 0
    away = false
    world.apps = [app]
    world.models = [{name: 'm'} as T.Model]
    world.replicas = ['a', 'b'].map((id) => ({id, model: 'm', version: '1', state: 'ready'}) as T.Replica)
    vi.stubGlobal('document', {visibilityState: 'visible'})
    live = new Live(
      () => lost++,
      () => new FakeEventSource() as unknown as EventSource,
      reads,
    )
    live.start()
    expect(live.known).toBe(false)
    say('hello', {me: {}, revision: 1})
    await pass()
  })
  afterEach(() => {
    live.stop()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it('reads everything at the beginning, and again when the stream is back', async () => {
    expect([live.known, live.replicasKnown, live.revision, reads.client.revision]).toEqual([true, true, 1, 1])
    expect(live.apps.get('wine')?.name).toBe('wine')
    expect(live.byVersion.get('m:1')).toHaveLength(2)
    world.apps = []
    say('hello', {me: {}, revision: 7})
    await pass(300)
    expect([live.apps.size, reads.client.revision]).toEqual([0, 7])
  })

  it('reads again what an event names, and nothing else', async () => {
    world.apps = [
      {...app, latency_slo_micros: 5},
      {...app, name: 'unnamed'},
    ]
    world.models = []
    await pass(300)
    asked.length = 0
    say('catalog', {revision: 2, changed: [{kind: 'app', name: 'wine'}]})
    say('catalog', {
      revision: 3,
      changed: [
        {kind: 'model', name: 'm'},
        {kind: 'stream', name: 's'},
      ],
    })
    await pass(300)
    expect(asked).toEqual(['app wine', 'app wine', 'model m'].slice(1))
    expect(live.apps.get('wine')?.latency_slo_micros).toBe(5)
    expect([live.apps.size, live.models.size, live.versions.size]).toEqual([1, 0, 0])
    say('catalog', {revision: 4})
    await pass(300)
    expect([...live.apps.keys()]).toEqual(['wine', 'unnamed'])
  })

  it('reads the versions of a model anew', async () => {
    say('catalog', {revision: 2, changed: [{kind: 'model', name: 'm'}]})
    await pass(300)
    expect([...live.versions.keys()]).toEqual(['m:2'])
  })

  it('reads once what many events say', async () => {
    await pass(300)
    asked.length = 0
    for (let i = 0; i < 100; i++) say('traffic', {})
    world.rate = 99
    await pass(300)
    expect(asked).toEqual(['traffic', 'traffic'])
    expect(live.traffic.get('wine')?.rate).toBe(99)
  })

  it('reads less often where nobody looks', async () => {
    vi.stubGlobal('document', {visibilityState: 'hidden'})
    await pass(300)
    say('traffic', {})
    await pass()
    asked.length = 0
    say('traffic', {})
    await pass(1900)
    expect(asked).toEqual([])
    await pass(200)
    expect(asked).toEqual(['traffic'])
  })

  it('tries again what failed, all of the catalog', async () => {
    await pass(300)
    away = true
    say('catalog', {revision: 2, changed: [{kind: 'app', name: 'wine'}]})
    await pass(100)
    expect(live.apps.size).toBe(1)
    away = false
    world.apps = []
    await pass(1000)
    expect(live.apps.size).toBe(0)
  })

  it('is stale when the stream stays away, and no more when it is back', async () => {
    FakeEventSource.last.onerror?.(new Event('error'))
    expect([lost, live.staleSince]).toEqual([1, null])
    await pass(1500)
    expect(live.staleSince).toBeTypeOf('number')
    expect(live.replicas.size).toBe(2)
    say('hello', {me: {}, revision: 2})
    expect(live.staleSince).toBeNull()
  })

  it('is not stale when the stream is back at once', async () => {
    FakeEventSource.last.onerror?.(new Event('error'))
    await pass(600)
    say('hello', {me: {}, revision: 2})
    await pass(5000)
    expect(live.staleSince).toBeNull()
  })

  it('reads nothing while the stream is away', async () => {
    await pass(300)
    away = true
    say('traffic', {})
    await pass()
    FakeEventSource.last.onerror?.(new Event('error'))
    asked.length = 0
    await pass(5000)
    expect(asked).toEqual([])
  })

  it('counts decisions and changes', () => {
    say('decision', {changed: [{kind: 'version', name: 'm:1'}]})
    say('audit', {
      changed: [
        {kind: 'app', name: 'a'},
        {kind: 'app', name: 'b'},
      ],
    })
    say('audit', {})
    expect([live.decided, live.audited]).toEqual([1, 3])
  })
})
