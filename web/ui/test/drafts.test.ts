import {describe, expect, it} from 'vitest'
import {appOf, blank, draftOf, inUnit, whole} from '../src/lib/appdraft'
import {kinds, options} from '../src/lib/policies'
import {draftOf as policyDraft, policyOf} from '../src/lib/policydraft'
import {nextVersion, versionOf, blank as blankVersion} from '../src/lib/versiondraft'

describe('drafts', () => {
  const app = {
    name: 'fraud',
    input_type: 'floats' as const,
    latency_slo_micros: 50_000,
    models: ['m'],
    policy: {kind: 'vote'},
    limit: {per_second: 5, burst: 9},
    cache: {round: 0.01},
    require_key: true,
    origin: 'api' as const,
  }
  it('leave an app as it is', () => {
    const {origin: _, ...rest} = app
    expect(appOf(draftOf(app), app)).toEqual(rest)
    expect(appOf(draftOf(blank), blank)).toEqual(blank)
  })
  it('take options away', () => {
    const draft = {...draftOf(app), description: ' ', limit: {burst: 9}, cache: {off: false}, require_key: false}
    expect(appOf(draft, app)).toEqual({
      name: 'fraud',
      input_type: 'floats',
      latency_slo_micros: 50_000,
      models: ['m'],
      policy: {kind: 'vote'},
    })
  })
  it('show numbers in other units', () => {
    for (const ms of [0, 0.1, 0.57, 4.35, 600_000, null]) expect(inUnit(whole(ms, 1000), 1000)).toBe(ms)
    expect(whole(0.57, 1000)).toBe(570)
  })

  it('leave a policy as it is, also what no field is for', () => {
    const policy = {kind: 'versions', weights: {'1': 0.9, '2': 0.1}, sticky: true, record_seconds: 60, costs: {a: 2}}
    expect(policyOf('versions', policyDraft(policy), policy)).toEqual(policy)
  })
  it('drop options of another kind', () =>
    expect(policyOf('single', policyDraft({kind: 'vote', agreement: 0.5}), {kind: 'vote', agreement: 0.5})).toEqual({kind: 'single'}))
  it('say what is no weight', () => expect(() => policyOf('vote', {...policyDraft({}), weights: 'a=b'}, {})).toThrow('NAME=WEIGHT'))
  it('have a field for every option of every kind', () => {
    const known = options.map((option) => option.name)
    for (const kind of kinds) expect(known).toEqual(expect.arrayContaining(kind.options))
  })

  it('make versions', () => {
    expect(versionOf({...blankVersion, command: 'python3 m.py', dir: '/m', env: 'A=1', labels: 'a, b'})).toEqual({
      version: '1',
      replicas: 1,
      input_type: 'doubles',
      command: ['python3', 'm.py'],
      dir: '/m',
      env: {A: '1'},
      labels: ['a', 'b'],
    })
    const held = {...blankVersion, from: 'bundle' as const, bundle: 'sha256:a', hostedBy: 'shelf', env: 'A=1', cpu: 5}
    expect(versionOf(held)).toEqual({version: '1', input_type: 'doubles', bundle: 'sha256:a', hosted_by: 'shelf'})
    expect(versionOf({...blankVersion, from: 'host'})).toEqual({
      version: '1',
      replicas: 1,
      host: {memory_mb: 512},
      command: ['python3', '-m', 'topsail', 'host'],
    })
    const trained = {...blankVersion, from: 'bundle' as const, bundle: 'sha256:a'}
    expect(
      versionOf({
        ...trained,
        scaled: true,
        min: 0,
        strategy: 'fixed',
        batchSize: 8,
        batchDelayMs: 1.5,
        pad: true,
        gpus: 2,
        gpuMemory: 16000,
        gpuDevice: 'nvidia/gpu/1g.10gb',
        driver: 'docker',
        secrets: 'HF_TOKEN=hf',
        artifacts: 'local/w=sha256:b@https://h/w?a=b@c\n\nsha512:c@https://h/x',
      }),
    ).toEqual({
      version: '1',
      input_type: 'doubles',
      bundle: 'sha256:a',
      scale: {min: 0, max: 4},
      batch: {strategy: 'fixed', max_size: 8, delay_micros: 1500, pad: true},
      resources: {gpu: {count: 2, memory_mb: 16000, device: 'nvidia/gpu/1g.10gb'}},
      driver: 'docker',
      secrets: {HF_TOKEN: 'hf'},
      artifacts: [
        {source: 'https://h/w?a=b@c', checksum: 'sha256:b', destination: 'local/w'},
        {source: 'https://h/x', checksum: 'sha512:c'},
      ],
    })
    const plain = {version: '1', replicas: 1, input_type: 'doubles', bundle: 'sha256:a'}
    expect(versionOf({...trained, pad: true, gpuMemory: 5})).toEqual({...plain}) // of fixed batches, of GPUs
    expect(versionOf({...blankVersion, command: './m', driver: 'docker'})).not.toHaveProperty('driver') // it needs an image
    expect(versionOf({...blankVersion, from: 'image', image: 'i', driver: 'exec'})).toMatchObject({driver: 'docker', image: 'i'})
    expect(() => versionOf({...trained, strategy: 'fixed'})).toThrow('size')
    expect(() => versionOf({...trained, artifacts: 'https://h/w'})).toThrow('CHECKSUM@URL')
    expect(() => versionOf(blankVersion)).toThrow('command')
    expect(() => versionOf({...blankVersion, from: 'bundle'})).toThrow('bundle')
  })
  it('go on counting', () => expect([nextVersion([]), nextVersion(['1', '9', '10']), nextVersion(['2024-11'])]).toEqual(['1', '11', '']))
})
