import {expect, it} from 'vitest'
import {placeOf, rowOf, stageRows} from '../src/lib/usage'

const figures = {usage: 7, cached: 0, failed: 1, missed: 0, total_micros: 70}

it('is a line for an app and a version, with the way there', () => {
  expect(rowOf({kind: 'app', app: 'wine', since: 's', ...figures})).toMatchObject({
    name: 'wine',
    href: '/ui/apps/wine?tab=usage',
    since: 's',
  })
  const row = rowOf({kind: 'version', model: 'forest', version: '2', ...figures})
  expect(row).toMatchObject({name: 'forest:2', href: '/ui/models/forest/2?tab=usage'})
  expect(row.figures.usage).toBe(7)
})

it('has a line for each stage, in their order', () => {
  const stages = [
    {stage: 'b', model: 'm', ...figures},
    {stage: 'a', ...figures},
  ]
  expect(stageRows({kind: 'app', ...figures, stages}).map(({name, model}) => [name, model?.href])).toEqual([
    ['b', '/ui/models/m'],
    ['a', undefined],
  ])
  expect(stageRows({kind: 'app', ...figures})).toEqual([])
})

it('leads to models and versions', () => expect([placeOf('a'), placeOf('a:1')]).toEqual(['/ui/models/a', '/ui/models/a/1']))
