import {expect, it} from 'vitest'
import {draw} from '../src/lib/graph'

const stage = (name: string, ...after: string[]) => ({stage: name, after})
const levels = (stages: {stage: string; after: string[]}[]) => draw(stages).stages.map(({level}) => level)

it('puts a chain in a row', () => {
  const {stages, input, answer, edges, rows} = draw([stage('a', 'input'), stage('b', 'a'), stage('c', 'b')])
  expect(stages).toEqual([
    {level: 1, row: 0},
    {level: 2, row: 0},
    {level: 3, row: 0},
  ])
  expect([input.level, answer.level, rows]).toEqual([0, 4, 1])
  expect(edges).toHaveLength(4)
})

it('puts branches beside each other, and what joins them behind the longest', () => {
  const stages = [
    stage('decode', 'input'),
    stage('left', 'decode'),
    stage('right', 'decode'),
    stage('far', 'right'),
    stage('rank', 'left', 'far'),
  ]
  expect(levels(stages)).toEqual([1, 2, 2, 3, 4])
  const {stages: at, rows} = draw(stages)
  expect(rows).toBe(2)
  expect(at[1]?.row).not.toBe(at[2]?.row)
})

it('leads an edge past the stages between its ends', () => {
  const {stages, edges} = draw([stage('a', 'input'), stage('b', 'a'), stage('c', 'b', 'input')])
  const long = edges.find((path) => path[0]?.level === 0 && path.at(-1)?.level === 3)
  expect(long?.map(({level}) => level)).toEqual([0, 1, 2, 3])
  expect(long?.slice(1, -1).every(({level, row}) => stages.every((s) => s.level !== level || s.row !== row))).toBe(true)
})

it('never puts two at one place, and leads every edge on, level by level', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  for (let round = 0; round < 200; round++) {
    const names = ['input']
    const stages = Array.from({length: 1 + random(12)}, (_, i) => {
      const after = names.filter((_, k) => k === names.length - 1 || random(3) === 0)
      names.push(`s${i}`)
      return stage(`s${i}`, ...after)
    })
    const {stages: at, answer, edges} = draw(stages)
    expect(new Set(at.map(({level, row}) => `${level}/${row}`)).size).toBe(stages.length)
    expect(answer.level).toBe(1 + Math.max(...at.map(({level}) => level)))
    for (const path of edges) path.slice(1).forEach(({level}, i) => expect(level).toBe((path[i]?.level ?? 0) + 1))
  }
})

it('takes the input for what it does not know', () => expect(levels([stage('a', 'ghost'), stage('b')])).toEqual([1, 1]))
