import {describe, expect, it} from 'vitest'
import {
  added,
  draftsOf,
  modelsOf,
  moved,
  sourcesOf,
  stagesOf,
  taken,
  toggled,
  toml,
  without,
  wrongs,
  type Draft,
} from '../src/lib/appstages'
import {appOf, blank, draftOf} from '../src/lib/appdraft'

const chain = [
  {name: 'a', model: 'x'},
  {name: 'b', model: 'y'},
  {name: 'c', model: 'x'},
]
const join = [
  {name: 'embed', model: 'e'},
  {name: 'colour', model: 'k', after: ['input']},
  {name: 'rank', model: 'r', after: ['embed', 'colour']},
]
const after = (drafts: Draft[]) => Object.fromEntries(stagesOf(drafts).map((stage, i, all) => [stage.name, sourcesOf(all, i).join()]))

describe('the stages of an app', () => {
  it('are as they were when nobody changes them', () => {
    for (const stages of [chain, join]) expect(stagesOf(draftsOf(stages))).toEqual(stages)
    expect(draftsOf([])).toEqual([])
  })

  it('may ask apps', () => {
    const stages = [
      {name: 'a', model: 'x'},
      {name: 'b', app: 'wine', after: ['input']},
    ]
    expect(stagesOf(draftsOf(stages))).toEqual(stages)
    expect(toml(stages)).toContain('name = "b"\napp = "wine"\nafter = ["input"]')
    expect(modelsOf({...blank, stages})).toEqual(['x'])
  })

  it('follow a stage that has another name', () => {
    const drafts = draftsOf(join).map((draft) => (draft.name === 'embed' ? {...draft, name: ' see '} : draft))
    expect(after(drafts)).toEqual({see: 'input', colour: 'input', rank: 'see,colour'})
  })

  it('are added behind the last one', () => {
    const drafts = added(draftsOf(chain))
    expect(taken(drafts, 3)).toEqual([3])
    expect(new Set(drafts.map(({id}) => id)).size).toBe(4)
    expect(taken(added([]), 0)).toEqual([0])
  })

  it('stay a chain when they change places', () => {
    expect(after(moved(draftsOf(chain), 2, -1))).toEqual({a: 'input', c: 'a', b: 'c'})
    expect(moved(draftsOf(chain), 0, -1)).toEqual(draftsOf(chain))
  })

  it('never take what stands behind them', () =>
    expect(after(moved(draftsOf(join), 1, 1))).toEqual({embed: 'input', rank: 'embed', colour: 'input'}))

  it('hand on what a stage took that is taken out', () => {
    expect(after(without(draftsOf(chain), 1))).toEqual({a: 'input', c: 'a'})
    expect(after(without(draftsOf(chain), 0))).toEqual({b: 'input', c: 'b'})
    expect(after(without(draftsOf(join), 0))).toEqual({colour: 'input', rank: 'input,colour'})
    expect(after(without(draftsOf([...join, {name: 'say', model: 's'}]), 2))).toEqual({
      embed: 'input',
      colour: 'input',
      say: 'embed,colour',
    })
  })

  it('take from whom is chosen, in that order, and always from somebody', () => {
    let drafts = toggled(draftsOf(chain), 2, 1)
    expect(after(drafts).c).toBe('b,a')
    drafts = toggled(drafts, 2, 2)
    expect(after(drafts).c).toBe('a')
    expect(after(toggled(drafts, 2, 1)).c).toBe('a')
    expect(stagesOf(toggled(toggled(drafts, 2, 2), 2, 1))).toEqual(chain) // the usual one goes without saying
  })

  it('say what is wrong', () => {
    expect(wrongs(draftsOf(join)).flatMap(Object.values).filter(Boolean)).toEqual([])
    const [one, two] = wrongs(
      draftsOf([
        {name: 'input', model: ''},
        {name: 'b c', model: 'y', after: ['input']},
      ]),
    )
    expect(one).toEqual({
      name: 'There is another one of this name.',
      model: 'Choose a model or an app.',
      use: 'No stage takes what it puts out, and only the last one answers.',
    })
    expect(two?.name).toContain('1 to 63')
    expect(
      wrongs(
        draftsOf([
          {name: 'a', model: 'x'},
          {name: 'a', model: 'x'},
        ]),
      )[1]?.name,
    ).toContain('another')
  })

  it('name the models of an app, each once', () => {
    expect(modelsOf({...blank, stages: chain})).toEqual(['x', 'y'])
    expect(modelsOf({...blank, models: ['m']})).toEqual(['m'])
  })

  it('are written as the configuration has them', () =>
    expect(toml(join.slice(1))).toBe(
      '[[app.stages]]\nname = "colour"\nmodel = "k"\nafter = ["input"]\n\n[[app.stages]]\nname = "rank"\nmodel = "r"\nafter = ["embed", "colour"]',
    ))
})

describe('an app with stages', () => {
  const staged = {...blank, name: 'read', stages: chain, models: [], policy: {kind: 'single'}}

  it('stays as it is', () => expect(appOf(draftOf(staged), staged)).toEqual(staged))
  it('has them instead of models and a policy', () => {
    const linked = {...blank, models: ['m'], policy: {kind: 'vote'}}
    const draft = {...draftOf(linked), staged: true, stages: draftsOf(join)}
    expect(appOf(draft, linked)).toEqual({...blank, stages: join})
  })
  it('goes without them', () => expect(appOf({...draftOf(staged), staged: false}, staged)).not.toHaveProperty('stages'))
})
