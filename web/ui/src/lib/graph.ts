// Where the stages of a pipeline stand in a drawing: each one level behind the last of what it takes, from the query's
// input on the left to its answer on the right.

export interface Place {
  level: number
  row: number // from the middle, which is 0
}

export interface Drawing {
  stages: Place[] // in the order of the stages
  input: Place
  answer: Place
  edges: Place[][] // from one to the other, through a lane of its own at each level between them
  rows: number
}

export const input = 'input'

interface Edge {
  from: number // a stage; -1 is the input
  to: number // a stage; their number is the answer
  path: Place[]
}

// draw lays the stages out, each of which is behind those that it takes.
export function draw(stages: readonly {stage: string; after: readonly string[]}[]): Drawing {
  const index = new Map([[input, -1]])
  const levels: number[] = []
  const levelOf = (i: number) => (i < 0 ? 0 : (levels[i] ?? 0))
  const edges: Edge[] = []
  stages.forEach(({stage, after}, to) => {
    const known = after.map((name) => index.get(name)).filter((from) => from !== undefined)
    const sources = known.length > 0 ? known : [-1]
    levels.push(1 + Math.max(...sources.map(levelOf)))
    for (const from of sources) edges.push({from, to, path: []})
    index.set(stage, to)
  })
  levels.push(1 + Math.max(0, ...levels))
  edges.push({from: stages.length - 1, to: stages.length, path: []})

  const places: Place[] = levels.map((level) => ({level, row: 0}))
  const start = {level: 0, row: 0}
  for (const edge of edges) edge.path.push(places[edge.from] ?? start)
  let rows = 1
  for (let level = 1; level <= levelOf(stages.length); level++) rows = Math.max(rows, column(level, places, edges, levels))
  return {
    stages: places.slice(0, -1),
    input: start,
    answer: places.at(-1) ?? start,
    edges: edges.map(({path}) => path),
    rows,
  }
}

// column places what stands at a level, stages and the edges that pass, near to where what leads there comes from. It
// returns how many they are.
function column(level: number, places: Place[], edges: Edge[], levels: number[]): number {
  const before = (edge: Edge) => edge.path.at(-1)?.row ?? 0
  const standing = places
    .map((place, i) => ({place, leading: edges.filter(({to}) => to === i)}))
    .filter(({place}) => place.level === level)
    .map(({place, leading}) => ({place, leading, near: mean(leading.map(before))}))
  const passing = edges
    .filter(({path, to}) => path.at(-1)?.level === level - 1 && (levels[to] ?? 0) > level)
    .map((edge) => ({place: {level, row: 0}, leading: [edge], near: before(edge)}))
  const all = [...standing, ...passing].sort((a, b) => a.near - b.near)
  all.forEach(({place, leading}, i) => {
    place.row = i - (all.length - 1) / 2
    for (const edge of leading) edge.path.push(place)
  })
  return all.length
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}
