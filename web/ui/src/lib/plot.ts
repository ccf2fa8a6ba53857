import uPlot from 'uplot'

// What a chart shows, apart from how uPlot wants it.

export interface Line {
  name: string
  values: readonly (number | null)[]
  colour: string // name of a token, such as chart-1
  dash?: boolean // a bound rather than something measured
  steps?: boolean
}

export interface Mark {
  at: number // Unix seconds
  tone: 'ok' | 'warn' | 'failed'
}

export interface Shape {
  lines: readonly Line[]
  stacked: boolean
  time: boolean
  format: (value: number) => string
  formatX: (value: number) => string
  marks: () => readonly Mark[]
  group: string // charts of a group share the cursor
  onCursor: (index: number | null) => void
  max?: number
  min?: number
  whole?: boolean // only whole numbers make sense
}

const wholeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
const font = '12px system-ui, sans-serif'

// stacked puts each series on those before it, so that the last is the sum of all.
export function stacked(lines: readonly Line[]): (number | null)[][] {
  const length = Math.max(0, ...lines.map((line) => line.values.length))
  const sums: number[] = new Array<number>(length).fill(0)
  return lines.map((line) =>
    sums.map((sum, i) => {
      const value = line.values[i]
      if (value === null || value === undefined) return null
      sums[i] = sum + value
      return sum + value
    }),
  )
}

// columns is the data in uPlot's order: a stack is painted from its top down.
export function columns(times: readonly number[], lines: readonly Line[], stack: boolean): uPlot.AlignedData {
  const series = stack ? stacked(lines).reverse() : lines.map((line) => [...line.values])
  return [[...times], ...series] as uPlot.AlignedData
}

// options are uPlot's, in the colours of the page.
export function options(shape: Shape, width: number, height: number, colour: (token: string) => string): uPlot.Options {
  const painted = shape.stacked ? [...shape.lines].reverse() : shape.lines
  return {
    width,
    height,
    legend: {show: false},
    cursor: {drag: {x: false, y: false}, sync: {key: shape.group}, points: {size: 6}},
    scales: {
      x: {time: shape.time},
      y: {range: (_, low, high) => [shape.min ?? Math.min(0, low ?? 0), shape.max ?? above(high ?? 1)]},
    },
    axes: [
      axis(colour, shape.formatX, shape.time ? {space: 64, size: 30} : {space: 48, size: 30}),
      axis(colour, shape.format, {size: 64, space: 36, ...(shape.whole && {incrs: wholeSteps})}),
    ],
    series: [{}, ...painted.map((line) => series(line, shape, colour))],
    hooks: {
      setCursor: [(plot) => shape.onCursor(plot.cursor.idx ?? null)],
      draw: [(plot) => drawMarks(plot, shape.marks(), colour)],
    },
  }
}

function above(high: number): number {
  return high > 0 ? high * 1.08 : 1
}

function axis(colour: (token: string) => string, format: (value: number) => string, more: Partial<uPlot.Axis>): uPlot.Axis {
  return {
    stroke: colour('muted'),
    font,
    grid: {stroke: colour('chart-grid'), width: 1},
    ticks: {stroke: colour('chart-grid'), width: 1, size: 4},
    values: (_, ticks) => ticks.map(format),
    ...more,
  }
}

function series(line: Line, {stacked: stack, time}: Shape, colour: (token: string) => string): uPlot.Series {
  const ink = colour(line.colour)
  return {
    label: line.name,
    stroke: ink,
    width: line.dash ? 1.5 : stack ? 1 : 1.75,
    points: {show: !time, size: 6},
    ...(line.dash && {dash: [6, 5]}),
    ...(stack && {fill: between(ink, colour('surface'), 0.55)}),
    ...(line.steps && uPlot.paths.stepped && {paths: uPlot.paths.stepped({align: 1})}),
  }
}

function drawMarks(plot: uPlot, marks: readonly Mark[], colour: (token: string) => string) {
  const {ctx, bbox} = plot
  ctx.save()
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.at, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.strokeStyle = ctx.fillStyle = colour(mark.tone)
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio])
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    ctx.beginPath()
    const size = 5 * devicePixelRatio
    ctx.moveTo(x - size, bbox.top)
    ctx.lineTo(x + size, bbox.top)
    ctx.lineTo(x, bbox.top + size * 1.4)
    ctx.fill()
  }
  ctx.restore()
}

// palette reads tokens as the page resolves them, which a canvas cannot do by itself.
export function palette(place: HTMLElement): (token: string) => string {
  const probe = document.createElement('span')
  place.append(probe)
  const known = new Map<string, string>()
  return (token) => {
    let value = known.get(token)
    if (value === undefined) {
      probe.style.color = `var(--${token})`
      value = getComputedStyle(probe).color
      known.set(token, value)
    }
    return value
  }
}

// between mixes two colours as getComputedStyle writes them. What lies behind a stack must not shine through.
function between(a: string, b: string, share: number): string {
  const [from, to] = [a, b].map((colour) => colour.match(/[\d.]+/g)?.map(Number) ?? [])
  const channels = [0, 1, 2].map((i) => Math.round((from?.[i] ?? 0) * share + (to?.[i] ?? 0) * (1 - share)))
  return `rgb(${channels.join(' ')})`
}

// summary says in words what a chart shows.
export function summary(lines: readonly Line[], format: (value: number) => string): string {
  return lines
    .filter((line) => !line.dash)
    .map((line) => {
      const values = line.values.filter((value) => value !== null)
      const last = values.at(-1)
      if (last === undefined) return `${line.name}: nothing is known.`
      return `${line.name}: ${format(last)} at the end, between ${format(Math.min(...values))} and ${format(Math.max(...values))}.`
    })
    .join(' ')
}
