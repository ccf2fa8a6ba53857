import type {AppTraffic} from '../api/schema'

const kept = 60

// History is the rate of every app in the last minute, for sparklines.
export class History {
  readonly #apps = new Map<string, number[]>()

  add(apps: AppTraffic[]) {
    const seen = new Set<string>()
    for (const {app, rate} of apps) {
      seen.add(app)
      const series = this.#apps.get(app)
      if (!series) {
        this.#apps.set(app, [rate])
        continue
      }
      series.push(rate)
      if (series.length > kept) series.shift()
    }
    for (const app of this.#apps.keys()) {
      if (!seen.has(app)) this.#apps.delete(app)
    }
  }

  rate(app: string): readonly number[] {
    return this.#apps.get(app) ?? []
  }
}
