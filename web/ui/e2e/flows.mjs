// What a person does with the system, done in a browser: from nothing to a model that answers, to its second version and
// back, to a replica that dies, to a key that is revoked. It runs against the Topsail at BASE_URL, or else against the mock.
//
//   BASE_URL       where the management service is, such as http://127.0.0.1:1338
//   FLOW_COMMAND   the command of a model that takes doubles and answers a number; {port} and the like are not replaced
//   FLOW_DIR       the folder that it runs in
//   FLOW_KEY       a key of the role admin, where keys are needed
//   FLOW_KILL      a command that kills the replica whose id, process and allocation are in $REPLICA, $PID and $ALLOCATION;
//                  without it the process is killed, which must be on this machine
import assert from 'node:assert/strict'
import {execFileSync} from 'node:child_process'
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'
import {start} from '../mock/server.mjs'
import {launch, open, patience, serious, settled} from './browser.mjs'

const pictures = join(import.meta.dirname, 'screenshots')
export async function flows() {
  mkdirSync(pictures, {recursive: true})
  const mock = process.env.BASE_URL ? null : await start({size: 'empty', mode: 'local'})
  const base = process.env.BASE_URL ?? mock.url
  const browser = await launch()
  const name = `flow-${Date.now().toString(36)}`
  const ctx = {
    base,
    mock: mock !== null,
    app: name,
    model: `${name}-model`,
    command: process.env.FLOW_COMMAND ?? 'gosum',
    dir: process.env.FLOW_DIR ?? '',
  }
  const {page, wrong} = await open(browser, base, {key: process.env.FLOW_KEY})
  let step = ''
  try {
    for (const flow of [
      registerAndDeploy,
      query,
      deployedAndMeasured,
      edit,
      policy,
      secondVersion,
      rollBack,
      setReplicas,
      override,
      dieAndComeBack,
      readLog,
      drain,
      chain,
      audited,
      key,
      tidyUp,
    ]) {
      step = flow.name
      const begun = performance.now()
      await flow(page, ctx, browser)
      console.log(`${flow.name}: ${((performance.now() - begun) / 1000).toFixed(1)} s`)
    }
    assert.deepEqual(wrong, [])
  } catch (err) {
    await page.screenshot({path: join(pictures, `flow-${step}-FAILED.png`), fullPage: true}).catch(() => {})
    throw new Error(`${step}: ${err.message}`, {cause: err})
  } finally {
    await browser.close()
    mock?.stop()
  }
}

async function registerAndDeploy(page, {base, app, model, command, dir}) {
  await page.goto(base + '/ui/start')
  const form = page.getByRole('region', {name: 'From here'})
  await form.getByLabel('App', {exact: true}).fill(app)
  await form.getByLabel('Answered within').fill('60000')
  await form.getByLabel('Model', {exact: true}).fill(model)
  await form.getByRole('textbox', {name: 'Command'}).fill(command)
  await form.getByLabel('Folder').fill(dir)
  await form.getByRole('button', {name: 'Deploy'}).click()
  await page.getByRole('button', {name: 'Send a query'}).waitFor()
  await picture(page, 'flow-deployed')
  await page.getByRole('button', {name: 'Send a query'}).click()
  await heading(page, app)
}

async function query(page, {base, app}) {
  await page.goto(`${base}/ui/apps/${app}?tab=try`)
  await page.getByLabel('Input', {exact: true}).fill('[1, 2')
  await page.getByText('This is not JSON').waitFor()
  assert.ok(await page.getByRole('button', {name: 'Predict', exact: true}).isDisabled(), 'what is wrong cannot be sent')
  await page.getByLabel('Input', {exact: true}).fill('[1, 2, 3.5]')
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  await page.getByText('Prediction', {exact: true}).waitFor()
  assert.equal(JSON.parse(await page.getByRole('region', {name: 'Answer', exact: true}).locator('pre').innerText()).output, 6.5)
  await page.getByText('Answered in').waitFor()
  await picture(page, 'flow-answer')
}

// The page of a version says who deployed it, and, once replicas have reported it, how fast it is. The mock measures nothing.
async function deployedAndMeasured(page, {base, model, mock}) {
  await page.goto(`${base}/ui/models/${model}/1`)
  const {deployed} = await api(page, {base}, `/models/${model}/versions/1`)
  const facts = page.getByRole('region', {name: 'What it is'})
  if (mock) return await facts.getByText('Deployed', {exact: true}).waitFor()
  assert.ok(deployed.by && deployed.client && Date.parse(deployed.at), JSON.stringify(deployed))
  await facts.getByText(`by ${deployed.by}, with ${deployed.client}`).waitFor()
  const measured = page.getByRole('region', {name: 'Performance'})
  await measured.getByText(/^half within \S+ (µs|ms), 99% within \S+ (µs|ms)$/).waitFor()
  await measured.getByText('1 inputs on average, in 1 batches').waitFor()
  await measured.getByText(/^\S+\/s – inputs of a replica/).waitFor()
  await measured.getByText('0 % of 1 answers').waitFor()
  await picture(page, 'flow-measured')
}

// Two people edit one app: the second one is shown the difference, and neither change is lost.
async function edit(page, {base, app}) {
  await page.goto(`${base}/ui/apps/${app}?tab=settings`)
  const slo = page.getByLabel('Latency objective')
  await slo.fill('40000')
  const other = await page.context().newPage()
  await other.goto(`${base}/ui/apps/${app}?tab=settings`)
  await other.getByLabel('Default output').fill('-7')
  await other.getByRole('button', {name: 'Save'}).click()
  await other.getByText(`${app} is saved.`).waitFor()
  await other.close()
  await page.getByRole('button', {name: 'Save'}).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('What they changed', {exact: true}).waitFor()
  await clean(page, 'flow-conflict')
  await dialog.getByRole('button', {name: 'Overwrite with my changes'}).click()
  await dialog.waitFor({state: 'hidden'})
  assert.equal(await page.getByLabel('Default output').inputValue(), '-7')
  assert.equal(await slo.inputValue(), '40000')
  await page.getByRole('button', {name: 'Save'}).click()
  await page.getByText(`${app} is saved.`).waitFor()
}

async function policy(page, {base, app}) {
  await page.goto(`${base}/ui/apps/${app}?tab=models`)
  await page.getByLabel('Kind').selectOption('epsilon_greedy')
  await page.getByLabel('Epsilon').fill('0.2')
  await page.getByRole('button', {name: 'Preview and save'}).click()
  await clean(page, 'flow-policy')
  await page.getByRole('dialog').getByRole('button', {name: 'Save'}).click()
  await page.getByText(`${app} has its new policy.`).waitFor()
  await page.getByRole('button', {name: 'Forget'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Forget'}).click()
  await page.getByText('is reset.').last().waitFor()
  await page.getByLabel('Kind').selectOption('single')
  await page.getByRole('button', {name: 'Preview and save'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Save'}).click()
  await page.getByRole('dialog').waitFor({state: 'hidden'})
}

async function secondVersion(page, {base, model, command, dir}) {
  await page.goto(`${base}/ui/models/${model}`)
  await page.getByRole('button', {name: 'Deploy a version'}).click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByLabel('Version').inputValue(), '2')
  await dialog.getByRole('textbox', {name: 'Command'}).fill(command)
  await dialog.getByLabel('Folder').fill(dir)
  await clean(page, 'flow-deploy')
  await dialog.getByRole('button', {name: 'Deploy', exact: true}).click()
  await heading(page, `${model}:2`)
  await page.getByText('Serving', {exact: true}).waitFor()
}

async function rollBack(page, {base, model}) {
  await page.goto(`${base}/ui/models/${model}`)
  await page.getByRole('button', {name: 'Roll back to 1'}).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('What that means').waitFor()
  await clean(page, 'flow-rollback')
  await dialog.getByRole('button', {name: 'Roll back'}).click()
  const facts = page.getByRole('region', {name: 'Versions in use'})
  await facts.getByText('1 – where queries go').waitFor()
  const newest = page.getByRole('region', {name: 'History'}).getByRole('row').nth(1)
  await newest.getByText('rolled back from 2').waitFor()
  assert.equal(await newest.getByRole('button').count(), 0) // it is current
  await page.getByRole('button', {name: 'Go back to it'}).first().waitFor()
}

async function setReplicas(page, {base, model}) {
  await page.goto(`${base}/ui/models/${model}/1`)
  await page.getByRole('button', {name: 'Set replicas'}).click()
  await page.getByRole('dialog').getByRole('spinbutton', {name: 'Replicas'}).fill('2')
  await clean(page, 'flow-scale')
  await page.getByRole('dialog').getByRole('button', {name: 'Save'}).click()
  await page.getByRole('dialog').waitFor({state: 'hidden'})
  await readyReplicas(page, 2)
}

async function override(page, {base, model}) {
  await page.goto(`${base}/ui/scaling/${model}/1`)
  await page.getByRole('button', {name: 'Override'}).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('spinbutton', {name: 'Replicas'}).fill('3')
  await dialog.getByLabel('Why').fill('a test')
  await clean(page, 'flow-override')
  await dialog.getByRole('button', {name: 'Override'}).click()
  await page.locator('.note', {hasText: 'Held at 3'}).waitFor()
  await page.goto(`${base}/ui/models/${model}/1`)
  await readyReplicas(page, 3)
  await page.getByRole('button', {name: 'Release'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Release'}).click()
  await page.locator('.note', {hasText: 'Held at 3'}).waitFor({state: 'hidden'})
  await readyReplicas(page, 2)
}

// The page is not loaded anew: it sees by itself that the replica dies and that it comes back. Where that takes less than
// the second in which replicas are looked at, what is seen of it is that there was a restart.
async function dieAndComeBack(page, ctx) {
  const id = await openReplica(page, ctx)
  const replica = await api(page, ctx, `/replicas/${encodeURIComponent(id)}`)
  await page.locator('h1 + .row [role=status]').getByText('Ready').waitFor()
  await page.evaluate(watchReplica, patience)
  await kill(page, ctx, replica)
  const seen = await page.evaluate(() => globalThis.seen)
  console.log(`  the page saw: ${seen.join(', ')}`)
  assert.ok(seen.length >= 2, 'the page saw that the replica died')
  await page.goto(`${ctx.base}/ui/models/${ctx.model}/1`)
  await readyReplicas(page, 2)
}

// watchReplica runs in the page of a replica, and lists in `seen` what it shows until the replica is back, or another is in its
// place.
function watchReplica(patience) {
  const look = () => {
    const state = document.querySelector('h1 + .row [role=status]')?.textContent.trim()
    const restarts = [...document.querySelectorAll('dt')]
      .find((term) => term.textContent === 'Restarts')
      ?.nextElementSibling?.textContent.trim()
    return state ? {ready: state === 'Ready', restarts, text: `${state} after ${restarts} restarts`} : {gone: true, text: 'gone'}
  }
  const first = look()
  const seen = [first.text]
  globalThis.seen = new Promise((resolve) => {
    const end = setTimeout(() => resolve(seen), patience)
    const next = () => {
      const now = look()
      if (now.text !== seen.at(-1)) seen.push(now.text)
      if (now.gone || (now.ready && now.restarts !== first.restarts)) {
        clearTimeout(end)
        resolve(seen)
      } else requestAnimationFrame(next)
    }
    next()
  })
}

async function readLog(page, ctx) {
  await openReplica(page, ctx)
  const log = page.getByRole('log')
  await log.locator('div, p').first().waitFor()
  await page.getByLabel('Search in the log').fill('nothing has this text')
  await page.getByText(/^0 of \d/).waitFor()
  await page.getByLabel('Search in the log').fill('')
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', {name: 'Download'}).click()])
  assert.match(download.suggestedFilename(), /\.log$/)
}

async function drain(page, ctx) {
  const id = await openReplica(page, ctx)
  await page.getByRole('button', {name: 'Drain'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Drain'}).click()
  await page.getByText(`${id} drains.`).waitFor()
  await page.goto(`${ctx.base}/ui/models/${ctx.model}/1`)
  await readyReplicas(page, 2)
}

// An app of two stages, which a person makes, asks, changes and takes away; it is counted where it was asked.
async function chain(page, {base, app, model}) {
  const name = `${app}-chain`
  await page.goto(base + '/ui/')
  await page.getByRole('button', {name: 'New app'}).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill(name)
  await dialog.getByLabel('Latency objective').fill('60000')
  await dialog.getByLabel('Models one after another').check()
  await dialog.getByLabel('Stage 1', {exact: true}).fill('sum')
  await dialog.getByLabel('sum asks').selectOption(model)
  await dialog.getByRole('button', {name: 'Add a stage'}).click()
  await dialog.getByLabel('Stage 2', {exact: true}).fill('again')
  await dialog.getByLabel('again asks').selectOption(model)
  await dialog.getByRole('img', {name: 'sum takes the input; again takes sum. again gives the answer.'}).waitFor()
  await clean(page, 'flow-stages')
  await dialog.getByRole('button', {name: 'Create app'}).click()
  await heading(page, name)

  await page.goto(`${base}/ui/apps/${name}?tab=try`)
  await page.getByLabel('Input', {exact: true}).fill('[1, 2, 3.5]')
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  await page.getByText('Prediction', {exact: true}).waitFor()
  assert.equal(JSON.parse(await page.getByRole('region', {name: 'Answer', exact: true}).locator('pre').innerText()).output, 6.5)

  await page.goto(`${base}/ui/apps/${name}?tab=settings`)
  await page.getByRole('button', {name: 'Add a stage'}).click()
  await page.getByLabel('Stage 3', {exact: true}).fill('last')
  await page.getByLabel('last asks').selectOption(model)
  const takes = page.getByRole('group', {name: 'Inputs of last'})
  await takes.getByLabel('sum').check()
  await takes.getByLabel('again').uncheck()
  await page.getByText('No stage takes what it puts out').waitFor()
  await page.getByRole('button', {name: 'Save'}).click()
  await page.getByText('feeds no other stage').waitFor()
  await takes.getByLabel('again').check()
  await page.getByRole('button', {name: 'Save'}).click()
  await page.getByText(`${name} is saved.`).waitFor()
  await page.goto(`${base}/ui/apps/${name}?tab=models`)
  const file = page.getByRole('region', {name: 'Stages in a file'})
  await file.waitFor()
  assert.equal(
    await file.innerText(),
    ['sum', 'again', 'last']
      .map((stage) => `[[app.stages]]\nname = "${stage}"\nmodel = "${model}"${stage === 'last' ? '\nafter = ["sum", "again"]' : ''}`)
      .join('\n\n'),
  )
  await picture(page, 'flow-chain')

  // Gateways say once a second what they counted, and the page asks every few seconds.
  await page.goto(`${base}/ui/usage`)
  const row = page.getByRole('table', {name: 'Usage of apps'}).getByRole('row').filter({hasText: name})
  await row.getByRole('cell', {name: '1', exact: true}).first().waitFor()
  await page.goto(`${base}/ui/apps/${name}?tab=usage`)
  await page
    .getByRole('table', {name: 'Usage of its stages'})
    .getByRole('row')
    .filter({hasText: 'again'})
    .getByRole('cell', {name: '1', exact: true})
    .first()
    .waitFor()
  await page.goto(`${base}/ui/apps/${name}?tab=settings`)
  await page.getByRole('button', {name: `Delete ${name}`}).click()
  await dialog.getByLabel('to confirm').fill(name)
  await dialog.getByRole('button', {name: 'Delete'}).click()
  await page.getByText(`${name} is gone.`).waitFor()
}

async function audited(page, {base, app, model}) {
  await page.goto(`${base}/ui/audit?name=${app}`)
  const change = page
    .locator('details')
    .filter({hasText: `changed app ${app}`})
    .first()
  await change.locator('summary').click()
  await change.getByText('+').first().waitFor()
  await page.goto(`${base}/ui/audit?kind=version&name=${model}:2`)
  await page.getByText(`created version ${model}:2`).waitFor()
}

// A key lets a browser in, and no longer once it is revoked.
async function key(page, {base, app, mock}, browser) {
  const name = `key-of-${app}`
  await page.goto(`${base}/ui/keys`)
  await page.getByRole('button', {name: 'New key'}).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill(name)
  await dialog.getByLabel('Role').selectOption('viewer')
  await clean(page, 'flow-key')
  await dialog.getByRole('button', {name: 'Make key'}).click()
  const secret = await dialog.getByRole('region', {name: 'Secret of the key'}).innerText()
  assert.match(secret, /^topsail_/)
  await dialog.getByRole('button', {name: 'I have it'}).click()
  assert.ok(!(await page.content()).includes(secret), 'the secret is shown once')
  const secured = (await api(page, {base}, '/me')).keys
  const guest = secured && !mock ? await open(browser, base) : null
  if (guest) {
    await guest.page.goto(base + '/ui/')
    await guest.page.getByLabel('Key').fill(secret)
    await guest.page.getByRole('button', {name: 'Sign in'}).click()
    await heading(guest.page, 'Overview')
    assert.ok(await guest.page.getByRole('button', {name: 'New app'}).isDisabled(), 'a viewer cannot make apps')
  }
  await page.getByRole('button', {name: `Revoke ${name}`}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Revoke'}).click()
  await page.getByText(`${name} is revoked.`).waitFor()
  await page.getByRole('button', {name: `Revoke ${name}`}).waitFor({state: 'detached'})
  if (guest) {
    await guest.page.getByText('Sign in to Topsail').waitFor()
    await guest.context.close()
  }
}

async function tidyUp(page, {base, app, model}) {
  await page.goto(`${base}/ui/apps/${app}?tab=settings`)
  await page.getByRole('button', {name: `Delete ${app}`}).click()
  const dialog = page.getByRole('dialog')
  assert.ok(await dialog.getByRole('button', {name: 'Delete'}).isDisabled(), 'a name has to be written first')
  await dialog.getByLabel('to confirm').fill(app)
  await clean(page, 'flow-delete')
  await dialog.getByRole('button', {name: 'Delete'}).click()
  await page.getByText(`${app} is gone.`).waitFor()
  await page.goto(`${base}/ui/models/${model}`)
  await page.getByRole('button', {name: 'Delete version 2'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Delete'}).click()
  await page.getByText(`${model}:2 is gone.`).waitFor()
  await page.getByRole('button', {name: `Delete ${model}`}).click()
  await page.getByRole('dialog').getByLabel('to confirm').fill(model)
  await page.getByRole('dialog').getByRole('button', {name: 'Delete'}).click()
  await heading(page, 'Models')
}

async function openReplica(page, {base, model}) {
  await page.goto(`${base}/ui/models/${model}/1`)
  await readyReplicas(page, 2)
  const link = page
    .getByRole('region', {name: `Replicas of ${model}:1`})
    .getByRole('row')
    .filter({hasText: 'Ready'})
    .first()
    .getByRole('link')
    .first()
  const id = await link.innerText()
  await link.click()
  await heading(page, id)
  return id
}

async function readyReplicas(page, count) {
  await page.waitForFunction(
    (count) => [...document.querySelectorAll('tbody tr')].filter((row) => row.textContent.includes('Ready')).length === count,
    count,
    {timeout: patience},
  )
}

async function kill(page, {base, mock}, replica) {
  if (mock) await page.request.post(`${base}/mock/kill/${encodeURIComponent(replica.id)}`)
  else if (process.env.FLOW_KILL) {
    execFileSync('sh', ['-c', process.env.FLOW_KILL], {
      env: {...process.env, REPLICA: replica.id, PID: String(replica.pid ?? ''), ALLOCATION: replica.allocation ?? ''},
    })
  } else process.kill(replica.pid, 'SIGKILL')
}

async function api(page, {base}, path) {
  const answer = await page.request.get(base + '/api/v1' + path)
  assert.ok(answer.ok(), `GET ${path}: ${answer.status()}`)
  return answer.json()
}

async function heading(page, text) {
  await page.getByRole('heading', {level: 1, name: text, exact: true}).waitFor()
}

async function picture(page, name) {
  await page.screenshot({path: join(pictures, `${name}.png`), fullPage: true})
}

// clean takes a picture of a dialog, and looks for what keeps people out of it.
async function clean(page, name) {
  await page.getByRole('dialog').waitFor()
  await settled(page)
  await page.screenshot({path: join(pictures, `${name}.png`)})
  assert.deepEqual(await serious(page), [], name)
}

if (process.argv[1] === import.meta.filename) await flows()
