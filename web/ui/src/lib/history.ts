import type {AppTraffic} from '../api/schema'

const kept = 60

// History is the last minute of every app, for sparklines.
export class History {
  readonly #apps = new Map<string, {rate: number[]; attainment: number[]}>()

  add(apps: AppTraffic[]) {
    const seen = new Set<string>()
    for (const {app, rate, attainment} of apps) {
      seen.add(app)
      const series = this.#apps.get(app)
      if (!series) {
        this.#apps.set(app, {rate: [rate], attainment: [attainment]})
        continue
      }
      push(series.rate, rate)
      push(series.attainment, attainment)
    }
    for (const app of this.#apps.keys()) {
      if (!seen.has(app)) this.#apps.delete(app)
    }
  }

  rate(app: string): readonly number[] {
    return this.#apps.get(app)?.rate ?? []
  }

  attainment(app: string): readonly number[] {
    return this.#apps.get(app)?.attainment ?? []
  }
}

function push(series: number[], value: number) {
  series.push(value)
  if (series.length > kept) series.shift()
}
