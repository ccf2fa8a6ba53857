// The management API, as far as the pages use it, over the world.
import {createHash} from 'node:crypto'
import {versionStages} from './stages.mjs'
import {appSeries, now, versionSeries} from './traffic.mjs'
import {appUsage, listUsage, versionPerformance, versionUsage} from './usage.mjs'

class Problem extends Error {
  constructor(status, title, detail, code) {
    super(detail)
    Object.assign(this, {status, title, code})
  }
}

const missing = (kind, name) => new Problem(404, 'Not found', `There is no ${kind} ${name}. See what there is, and try again.`, 'not_found')
const t = () => Date.now() / 1000

export function routes(world) {
  const app = (name) => world.apps.get(name) ?? raise(missing('app', name))
  const model = (name) => world.models.get(name) ?? raise(missing('model', name))
  const version = (m, v) => world.versions.get(`${m}:${v}`) ?? raise(missing('version', `${m}:${v}`))
  const replica = (id) => world.replicas.get(id) ?? raise(missing('replica', id))
  const dryRun = (q, changes, effects) => (q.has('dry_run') ? {status: 200, body: {dry_run: true, changes, effects}} : null)
  const matched = (req, kind, name) => {
    const want = req.headers['if-match']
    if (want && want !== '*' && want !== world.etag(kind, name)) {
      throw new Problem(
        412,
        'Precondition failed',
        `The ${kind} ${name} was changed in between. Read it again, and make your change to what is there now.`,
        'conflict',
      )
    }
  }
  const appAnswer = (name, status = 200) => ({status, body: world.apps.get(name), etag: world.etag('app', name)})
  const saveApp = (who, next) => {
    const before = world.apps.get(next.name)
    world.app({...next, origin: 'api'}, before ? world.nature(next.name) : undefined)
    world.audit(who, before ? 'update' : 'create', 'app', next.name, before, next)
    const models = new Set([...(before ? world.modelsOf(before) : []), ...world.modelsOf({models: [], ...next})])
    const versions = [...world.versions.values()].filter((v) => models.has(v.model)).map((v) => `${v.model}:${v.version}`)
    world.catalogChanged({apps: [next.name], models: [...models], versions})
  }
  const check = (next) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(next.name ?? '')) {
      throw new Problem(
        422,
        'Invalid app',
        `app name ${JSON.stringify(next.name)}: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit`,
        'invalid',
      )
    }
    for (const name of world.modelsOf({models: [], ...next})) model(name)
    const used = new Set(next.stages?.flatMap((stage, i) => stage.after ?? [next.stages[i - 1]?.name]))
    const idle = next.stages?.slice(0, -1).find((stage) => !used.has(stage.name))
    if (idle)
      throw new Problem(
        422,
        'Invalid app',
        `app ${JSON.stringify(next.name)}: stage ${JSON.stringify(idle.name)} feeds no other stage: only the last one answers the query`,
        'invalid',
      )
    if (next.stages?.length && next.models?.length)
      throw new Problem(422, 'Invalid app', `app ${JSON.stringify(next.name)}: has stages and also linked models or a policy`, 'invalid')
  }
  const switchTo = (who, name, to) => {
    const m = model(name)
    const before = {...m}
    version(name, to)
    m.previous = m.current
    m.current = to
    world.touch('model', name)
    world.audit(who, 'update', 'model', name, {current: before.current}, {current: to})
    for (const v of m.versions) world.reconcile(world.versions.get(`${name}:${v}`))
    const ready = [...world.replicas.values()].some((r) => r.model === name && r.version === to && r.state === 'ready')
    if (ready) m.serving = to
    world.catalogChanged({models: [name], versions: m.versions.map((v) => `${name}:${v}`)})
    return {status: 200, body: world.modelView(m), etag: world.etag('model', name)}
  }
  const switchEffects = (name, to) => {
    const ready = [...world.replicas.values()].filter((r) => r.model === name && r.version === to && r.state === 'ready').length
    const apps = world.appsOf(name)
    return [
      ready > 0
        ? `${name}:${to} has ${ready} ready replica${ready > 1 ? 's' : ''}: it takes the queries at once.`
        : `${name}:${to} has no ready replica: one is started, and ${model(name).serving} answers until it is ready.`,
      apps.length > 0 ? `The queries of ${apps.join(', ')} go to it.` : 'No app links this model, so no query is affected.',
      'Cached answers of the other version are not used.',
    ]
  }
  const stream = (name) => world.streams.get(name) ?? raise(missing('stream', name))
  const changeStream = (who, q, before, after, effects) => {
    const {name} = before
    const action = after ? 'update' : 'delete'
    const dry = dryRun(q, [{action, kind: 'stream', name, before, after}], effects)
    if (dry) return dry
    if (after) world.stream(after)
    else world.streams.delete(name)
    world.revision++
    world.audit(who, action, 'stream', name, before, after)
    world.catalogChanged({})
    return after ? {status: 200, body: after} : {status: 204}
  }
  const page = (items, q) => {
    const limit = Number(q.get('limit') ?? 1000)
    const from = Number(q.get('cursor') ?? 0)
    return {items: items.slice(from, from + limit), ...(from + limit < items.length && {next: String(from + limit)})}
  }

  return [
    ['GET', '/apps', ({q}) => ({body: page([...world.apps.values()], q)})],
    [
      'POST',
      '/apps',
      ({body, q, who}) => {
        check(body)
        if (world.apps.has(body.name))
          throw new Problem(409, 'Exists', `There is an app ${body.name} already. Choose another name, or edit it.`, 'exists')
        const dry = dryRun(q, [{action: 'create', kind: 'app', name: body.name, after: body}], [])
        if (dry) return dry
        saveApp(who, body)
        return appAnswer(body.name, 201)
      },
    ],
    ['GET', '/apps/:app', ({args}) => (app(args.app), appAnswer(args.app))],
    [
      'PUT',
      '/apps/:app',
      ({args, body, req, who}) => {
        check(body)
        if (world.apps.has(args.app)) matched(req, 'app', args.app)
        saveApp(who, body)
        return appAnswer(args.app)
      },
    ],
    [
      'DELETE',
      '/apps/:app',
      ({args, q, who}) => {
        const before = app(args.app)
        const dry = dryRun(
          q,
          [{action: 'delete', kind: 'app', name: args.app, before}],
          [`Queries to ${args.app} are answered with 404 from then on.`, `${(before.models ?? []).join(', ') || 'No model'} stays.`],
        )
        if (dry) return dry
        world.apps.delete(args.app)
        world.revision++
        world.audit(who, 'delete', 'app', args.app, before)
        world.catalogChanged({models: world.modelsOf(before)}, [{kind: 'app', name: args.app}])
        return {status: 204}
      },
    ],
    [
      'PUT',
      '/apps/:app/links/:model',
      ({args, who}) => {
        const before = app(args.app)
        model(args.model)
        if (!before.models.includes(args.model)) saveApp(who, {...before, models: [...before.models, args.model]})
        return appAnswer(args.app)
      },
    ],
    [
      'DELETE',
      '/apps/:app/links/:model',
      ({args, q, who}) => {
        const before = app(args.app)
        const dry = dryRun(
          q,
          [],
          [
            `${args.app} no longer asks ${args.model}.`,
            before.models.length === 1 ? 'No model is left: every query gets the default output.' : 'The others answer.',
          ],
        )
        if (dry) return dry
        saveApp(who, {...before, models: before.models.filter((name) => name !== args.model)})
        return appAnswer(args.app)
      },
    ],
    ['GET', '/apps/:app/policy', ({args}) => ({body: app(args.app).policy ?? {kind: 'single'}, etag: world.etag('app', args.app)})],
    [
      'PUT',
      '/apps/:app/policy',
      ({args, body, q, req, who}) => {
        const before = app(args.app)
        matched(req, 'app', args.app)
        const after = {...before, policy: body}
        const dry = dryRun(
          q,
          [{action: 'update', kind: 'app', name: args.app, before, after}],
          ['The next query is decided by the new policy.', 'What the old one learned is kept beside it.'],
        )
        if (dry) return dry
        saveApp(who, after)
        return appAnswer(args.app)
      },
    ],
    [
      'GET',
      '/apps/:app/insight',
      ({args, q}) => {
        const a = app(args.app)
        const kind = a.policy?.kind ?? 'single'
        const names =
          kind === 'versions' ? model(a.models[0]).versions.map((v) => [a.models[0], v]) : a.models.map((m) => [m, model(m).serving])
        const fresh = world.forgotten.has(args.app)
        const learns = !['single', 'prefer', 'hedge', 'vote', 'mean', 'median'].includes(kind)
        const states = (m, v) => [...world.replicas.values()].filter((r) => r.model === m && r.version === v).map((r) => r.state)
        return {
          body: {
            app: args.app,
            policy: kind,
            at: new Date().toISOString(),
            traffic: now(world, t()).apps.find((one) => one.app === args.app),
            ...(learns && {
              learned: {
                ...(q.get('uid') && {uid: q.get('uid')}),
                ...(q.get('context') && {context: q.get('context')}),
                steps: fresh ? 0 : 18342,
                loss: fresh ? 0 : 0.031,
                regret: fresh ? 0 : 12.4,
                ...(kind === 'versions' && {
                  note: 'The canary 4 has 10% of the queries since 9 min and keeps them: its loss is no larger.',
                }),
              },
            }),
            models: names.map(([m, v], i) => ({
              model: m,
              version: v,
              current: model(m).current === v,
              ...(names.length > 1 && {chosen: i === 0 ? 0.62 : 0.38 / (names.length - 1), answered: 0.998 - 0.01 * i, agreed: 0.9}),
              ...(learns && {
                learned: {
                  share: names.length === 1 ? 1 : i === 0 ? 0.62 : 0.38 / (names.length - 1),
                  worth: fresh ? 0.5 : 0.96 - 0.05 * i,
                  judged: fresh ? 0 : 9200 - 2600 * i,
                  loss: fresh ? 0 : 0.024 + 0.02 * i,
                },
              }),
              latency_micros: 1840 + 300 * i,
              replicas: states(m, v).reduce((of, state) => ({...of, [state]: (of[state] ?? 0) + 1}), {}),
              usage: versionUsage(world, version(m, v), t()),
            })),
            decisions: world.decisions.filter((d) => names.some(([m, v]) => d.model === m && d.version === v)).slice(0, 20),
          },
        }
      },
    ],
    [
      'DELETE',
      '/apps/:app/learned',
      ({args, who}) => {
        app(args.app)
        world.forgotten.add(args.app)
        world.audit(who, 'forget', 'learned', args.app)
        return {status: 204}
      },
    ],
    ['POST', '/apps/:app/try', ({args, body}) => ({body: trial(world, app(args.app), body)})],
    ['GET', '/apps/:app/traffic', ({args, q}) => ({body: appSeries(world, app(args.app), Number(q.get('window') ?? 900), t())})],
    ['GET', '/apps/:app/usage', ({args}) => ({body: appUsage(world, app(args.app), t())})],
    ['GET', '/usage', ({q}) => ({body: page(listUsage(world, q.get('model'), t()), q)})],
    ['GET', '/traffic', () => ({body: now(world, t())})],
    [
      'GET',
      '/models',
      ({q}) => ({
        body: page(
          [...world.models.values()].map((m) => world.modelView(m)),
          q,
        ),
      }),
    ],
    ['GET', '/models/:model', ({args}) => ({body: world.modelView(model(args.model)), etag: world.etag('model', args.model)})],
    [
      'DELETE',
      '/models/:model',
      ({args, q, who}) => {
        const before = model(args.model)
        const users = world.appsOf(args.model)
        if (users.length > 0)
          throw new Problem(409, 'In use', `${args.model} is linked by ${users.join(', ')}. Unlink it there first.`, 'in_use')
        const dry = dryRun(q, [], [`All versions go: ${before.versions.join(', ')}.`])
        if (dry) return dry
        const gone = [{kind: 'model', name: args.model}]
        for (const v of before.versions) {
          world.versions.delete(`${args.model}:${v}`)
          gone.push({kind: 'version', name: `${args.model}:${v}`})
        }
        world.models.delete(args.model)
        removeReplicas(world, (r) => r.model === args.model)
        world.audit(who, 'delete', 'model', args.model, before)
        world.catalogChanged({}, gone)
        return {status: 204}
      },
    ],
    [
      'PUT',
      '/models/:model/current',
      ({args, body, q, who}) =>
        dryRun(
          q,
          [
            {
              action: 'update',
              kind: 'model',
              name: args.model,
              before: {current: model(args.model).current},
              after: {current: body.version},
            },
          ],
          switchEffects(args.model, body.version),
        ) ?? switchTo(who, args.model, body.version),
    ],
    [
      'GET',
      '/models/:model/history',
      ({args, q}) => {
        const m = model(args.model)
        const items = m.versions.map((v, i) => ({
          id: String(i + 1),
          at: new Date(Date.now() - (m.versions.length - i) * 86_400_000).toISOString(),
          action: 'promoted',
          version: v,
          ...(i > 0 && {before: m.versions[i - 1]}),
          who: 'ci',
          from: '10.0.0.7',
          client: 'topsail-python/0.1',
        }))
        const switched = world.audits
          .filter((a) => a.kind === 'model' && a.name === args.model && a.after?.current && a.after.current !== a.before?.current)
          .map(({id, at, who, before, after}) => {
            const back = m.versions.indexOf(after.current) < m.versions.indexOf(before?.current)
            return {
              id,
              at,
              action: back ? 'rolled_back' : 'promoted',
              version: after.current,
              before: before?.current,
              who,
              from: '10.0.0.7',
            }
          })
        return {body: page([...switched, ...items.reverse()], q)}
      },
    ],
    [
      'POST',
      '/models/:model/rollback',
      ({args, body, q, who}) => {
        const m = model(args.model)
        const to = body?.version ?? m.previous
        if (!to) throw new Problem(409, 'Nothing before', `${args.model} has had no other version. Deploy one first.`, 'conflict_state')
        return (
          dryRun(
            q,
            [
              {
                action: 'update',
                kind: 'model',
                name: args.model,
                before: {current: m.current, previous: m.previous},
                after: {current: to, previous: m.current},
              },
            ],
            switchEffects(args.model, to),
          ) ?? switchTo(who, args.model, to)
        )
      },
    ],
    [
      'GET',
      '/versions',
      ({q}) => ({
        body: page(
          [...world.versions.values()].map((v) => world.versionView(v)),
          q,
        ),
      }),
    ],
    [
      'GET',
      '/models/:model/versions',
      ({args, q}) => ({
        body: page(
          model(args.model).versions.map((v) => world.versionView(version(args.model, v))),
          q,
        ),
      }),
    ],
    [
      'POST',
      '/models/:model/versions',
      ({args, body, q, who}) => {
        if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(args.model))
          throw new Problem(
            422,
            'Invalid model',
            `model name ${JSON.stringify(args.model)}: use 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit`,
            'invalid',
          )
        const key = `${args.model}:${body.version}`
        if (world.versions.has(key))
          throw new Problem(409, 'Exists', `There is a version ${key} already, and versions do not change. Choose another name.`, 'exists')
        const old = world.models.get(args.model)
        const dry = dryRun(q, [{action: 'create', kind: 'version', name: key, after: body}], [])
        if (dry) return dry
        const before = old && {...old}
        world.version(args.model, body)
        if (q.get('keep_current') === 'true' && before)
          Object.assign(world.models.get(args.model), {current: before.current, previous: before.previous})
        world.audit(who, 'create', 'version', key, undefined, body)
        world.reconcile(world.versions.get(key))
        world.catalogChanged({models: [args.model], versions: world.models.get(args.model).versions.map((v) => `${args.model}:${v}`)})
        return {status: 201, body: world.versionView(world.versions.get(key)), etag: world.etag('version', key)}
      },
    ],
    [
      'GET',
      '/models/:model/versions/:version',
      ({args}) => ({
        body: {
          ...world.versionView(version(args.model, args.version)),
          ...versionPerformance(world, version(args.model, args.version), t()),
        },
        etag: world.etag('version', `${args.model}:${args.version}`),
      }),
    ],
    [
      'DELETE',
      '/models/:model/versions/:version',
      ({args, q, who}) => {
        const before = version(args.model, args.version)
        const m = model(args.model)
        if (world.usedBy(before).length > 0)
          throw new Problem(
            409,
            'In use',
            `${args.model}:${args.version} is used by ${world.usedBy(before).join(', ')}. Make another version current first.`,
            'in_use',
          )
        const dry = dryRun(q, [], [`${args.model}:${args.version} and its replicas go.`])
        if (dry) return dry
        m.versions = m.versions.filter((v) => v !== args.version)
        if (m.previous === args.version) m.previous = ''
        world.versions.delete(`${args.model}:${args.version}`)
        removeReplicas(world, (r) => r.model === args.model && r.version === args.version)
        world.audit(who, 'delete', 'version', `${args.model}:${args.version}`, before)
        world.catalogChanged({models: [args.model]}, [{kind: 'version', name: `${args.model}:${args.version}`}])
        return {status: 204}
      },
    ],
    [
      'PUT',
      '/models/:model/versions/:version/scale',
      ({args, body, who}) => {
        const v = version(args.model, args.version)
        const before = {replicas: v.replicas, scale: v.scale}
        if (body.replicas !== undefined) v.replicas = body.replicas
        if (body.replicas !== undefined && body.scale === undefined) delete v.scale
        if (body.scale !== undefined) v.scale = body.scale
        return changed(world, v, who, before, {replicas: v.replicas, scale: v.scale}, 'manual')
      },
    ],
    [
      'PUT',
      '/models/:model/versions/:version/pin',
      ({args, body, who}) => {
        const v = version(args.model, args.version)
        const before = {pin: v.pin ?? null}
        v.pin = body
        return changed(world, v, who, before, {pin: body}, 'pin')
      },
    ],
    [
      'DELETE',
      '/models/:model/versions/:version/pin',
      ({args, who}) => {
        const v = version(args.model, args.version)
        const before = {pin: v.pin ?? null}
        delete v.pin
        return changed(world, v, who, before, {pin: null}, 'capacity')
      },
    ],
    ['GET', '/models/:model/versions/:version/job', ({args}) => ({body: job(world, version(args.model, args.version))})],
    ['GET', '/models/:model/versions/:version/usage', ({args}) => ({body: versionUsage(world, version(args.model, args.version), t())})],
    [
      'GET',
      '/models/:model/versions/:version/traffic',
      ({args, q}) => ({body: versionSeries(world, version(args.model, args.version), Number(q.get('window') ?? 900), t())}),
    ],
    [
      'GET',
      '/models/:model/versions/:version/stages',
      ({args, q}) => ({body: versionStages(world, version(args.model, args.version), Number(q.get('window') ?? 60), t())}),
    ],
    ['GET', '/replicas', ({q}) => ({body: page([...world.replicas.values()], q)})],
    [
      'GET',
      '/replicas/:replica',
      ({args}) => {
        const one = replica(args.replica)
        const {stages} = versionStages(world, version(one.model, one.version), 60, t(), one)
        return {body: {...one, ...(stages.length > 0 && {stages})}}
      },
    ],
    [
      'POST',
      '/replicas/:replica/restart',
      ({args, who}) => {
        replica(args.replica)
        world.audit(who, 'restart', 'replica', args.replica)
        world.die(args.replica, 'an operator restarts it')
        return {status: 202}
      },
    ],
    [
      'POST',
      '/replicas/:replica/drain',
      ({args, who}) => {
        replica(args.replica)
        world.audit(who, 'drain', 'replica', args.replica)
        world.drain(args.replica)
        return {status: 202}
      },
    ],
    ['GET', '/artifacts', ({q}) => ({body: page([...world.artifacts.values()], q)})],
    [
      'POST',
      '/artifacts',
      ({bytes, who}) => {
        if (bytes.length < 4 || bytes.readUInt32LE(0) !== 0x04034b50)
          throw new Problem(
            422,
            'Invalid bundle',
            'This is no zip archive. Make a bundle with the Python client, and upload that.',
            'invalid',
          )
        const digest = 'sha256:' + createHash('sha256').update(bytes).digest('hex')
        const artifact = {
          digest,
          size: bytes.length,
          created: new Date().toISOString(),
          manifest: {
            format: 1,
            runtime: 'sklearn',
            python: '3.11',
            requirements: ['scikit-learn==1.7.2', 'numpy==2.3.4'],
            entry: 'model:predict',
            input_type: 'doubles',
            input_length: 13,
            example: [1, 2, 3],
            files: {'model.pkl': {sha256: 'ab'.repeat(32), size: bytes.length - 400}},
          },
          used_by: [],
        }
        const known = world.artifacts.has(digest)
        world.artifacts.set(digest, artifact)
        world.audit(who, 'upload', 'artifact', digest)
        return {status: known ? 200 : 201, body: artifact}
      },
    ],
    [
      'GET',
      '/decisions',
      ({q}) => ({
        body: {
          items: world.decisions
            .filter((d) => (!q.get('model') || d.model === q.get('model')) && (!q.get('version') || d.version === q.get('version')))
            .slice(0, Number(q.get('limit') ?? 100)),
        },
      }),
    ],
    ['GET', '/scheduler', () => ({body: {leader: 'scheduler-1', dry_run: false, pools: world.pools()}})],
    ['GET', '/cluster', () => ({body: world.cluster()})],
    [
      'PUT',
      '/cluster/roles/:role/count',
      ({args, who}) => {
        world.audit(who, 'scale', 'role', args.role)
        return {status: 202}
      },
    ],
    [
      'GET',
      '/audit',
      ({q}) => ({
        body: page(
          world.audits.filter((e) => ['kind', 'name', 'who'].every((f) => !q.get(f) || e[f] === q.get(f))),
          q,
        ),
      }),
    ],
    [
      'GET',
      '/streams',
      ({q}) => ({
        body: page(
          [...world.streams.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
          q,
        ),
      }),
    ],
    ['GET', '/streams/:stream', ({args}) => ({body: stream(args.stream)})],
    [
      'PUT',
      '/streams/:stream/suspension',
      ({args, body, q, who}) => {
        const before = stream(args.stream)
        const since = before.suspension?.since ?? new Date().toISOString()
        const suspension = {since, by: who, ...(body?.reason && {reason: body.reason})}
        return changeStream(who, q, before, {...before, suspension}, [])
      },
    ],
    [
      'DELETE',
      '/streams/:stream/suspension',
      ({args, q, who}) => {
        const {suspension, ...open} = stream(args.stream)
        return changeStream(who, q, stream(args.stream), open, [])
      },
    ],
    [
      'DELETE',
      '/streams/:stream',
      ({args, q, who}) => {
        const before = stream(args.stream)
        if (before.suspension) throw new Problem(409, 'In use', `stream "${args.stream}" is suspended; resume it first`, 'in_use')
        const effect = `Stream "${args.stream}" is forgotten, unless a process serves it, which announces it again.`
        return changeStream(who, q, before, undefined, [effect])
      },
    ],
    [
      'GET',
      '/keys',
      ({q}) => ({
        body: page(
          [...world.keys.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
          q,
        ),
      }),
    ],
    [
      'POST',
      '/keys',
      ({body, who}) => {
        if (!body.name) throw new Problem(422, 'Invalid key', 'A key needs a name.', 'invalid')
        const secret = `topsail_${Math.random().toString(36).slice(2, 12).padEnd(10, '0')}_${'MOCK'.repeat(13)}`
        const id = world.key({...body, created: new Date().toISOString()}, secret)
        world.audit(who, 'create', 'key', body.name, undefined, body)
        return {status: 201, body: {...world.keys.get(id), secret}}
      },
    ],
    [
      'DELETE',
      '/keys/:key',
      ({args, who}) => {
        const key = world.keys.get(args.key) ?? raise(missing('key', args.key))
        world.keys.delete(args.key)
        world.secrets.delete(args.key)
        world.audit(who, 'delete', 'key', key.name, key)
        return {status: 204}
      },
    ],
  ]
}

export {Problem}

function raise(problem) {
  throw problem
}

function removeReplicas(world, which) {
  const gone = [...world.replicas.values()].filter(which).map((r) => r.id)
  for (const id of gone) world.replicas.delete(id)
  if (gone.length > 0) world.emit('replicas', {changed: [], gone})
}

function changed(world, v, who, before, after, rule) {
  const name = `${v.model}:${v.version}`
  const had = [...world.replicas.values()].filter((r) => r.model === v.model && r.version === v.version).length
  world.touch('version', name)
  world.audit(who, 'update', 'version', name, before, after)
  world.reconcile(v)
  const to = world.wanted(v)
  if (to !== had) world.decide({model: v.model, version: v.version, from: had, to, rule, reason: v.pin?.reason || `${who} asked for ${to}`})
  world.catalogChanged({versions: [name]})
  return {status: 200, body: world.versionView(v), etag: world.etag('version', name)}
}

function trial(world, app, query) {
  const outputs = {wine: 0, digits: 3, fraud: {score: 0.083, review: false}, sentiment: 'positive'}
  const numbers = Array.isArray(query.input) && query.input.every((x) => typeof x === 'number')
  const sum = numbers ? query.input.reduce((a, b) => a + b, 0) : 1
  const ready = world.modelsOf(app).some((m) => [...world.replicas.values()].some((r) => r.model === m && r.state === 'ready'))
  if (query.input === undefined && query.input_batch === undefined) {
    return {
      status: 400,
      answer: {error: 'Json error', cause: 'the query has neither input nor input_batch'},
      micros: 180,
      stages: [{stage: 'parse', micros: 180}],
      gateway: 'gateway-1',
    }
  }
  world.asked.set(app.name, (world.asked.get(app.name) ?? 0) + 1)
  const one = ready
    ? {query_id: 4194304 + Math.floor(Math.random() * 1000), output: outputs[app.name] ?? sum, default: false}
    : {query_id: 4194304, output: app.default_output ?? '', default: true, default_explanation: 'No connected models found for query'}
  const stages = ready
    ? [
        {stage: 'parse', micros: 90},
        {stage: 'policy', micros: 40},
        {stage: 'queue', micros: 1250},
        {stage: 'batch', micros: 2100},
        {stage: 'model', micros: 3820},
        {stage: 'return', micros: 310},
      ]
    : [
        {stage: 'parse', micros: 90},
        {stage: 'wait', micros: app.latency_slo_micros},
      ]
  const answer =
    query.input === undefined
      ? {batch_predictions: query.input_batch.map(() => one)}
      : {...one, ...(query.explain && {explanation: {policy: app.policy?.kind ?? 'single', ended: 'complete', models: []}})}
  return {status: 200, answer, micros: stages.reduce((sum, s) => sum + s.micros, 0), stages, gateway: 'gateway-1'}
}

function job(world, v) {
  const command = v.command ?? ['python3', '-m', 'topsail', 'run', v.bundle ?? '']
  if (world.mode === 'local') return {kind: 'process', text: command.join(' ')}
  const sidecar = {Driver: 'raw_exec', Lifecycle: {Hook: 'prestart', Sidecar: true}, Name: 'sidecar'}
  const container = {
    Config: {args: command.slice(1), command: command[0]},
    Driver: v.driver ?? 'raw_exec',
    Name: 'container',
    Resources: {CPU: v.resources?.cpu ?? 500, MemoryMB: v.resources?.memory_mb ?? 300},
  }
  const group = {Count: world.wanted(v), Name: 'replica', Tasks: [sidecar, container]}
  return {
    kind: 'nomad',
    text: JSON.stringify({ID: `topsail-${v.model}-${v.version}`, TaskGroups: [group], Type: 'service'}, null, 2) + '\n',
    plan: `+/- Job: "topsail-${v.model}-${v.version}"\n+/- Task Group: "replica" (1 in-place update)\n  +/- Count: "${world.wanted(v)}" => "${world.wanted(v) + 1}" (forces create)\n\nScheduler dry-run:\n- All tasks successfully allocated.\n`,
  }
}
