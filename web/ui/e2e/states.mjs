// How the pages take what goes wrong: a lost stream, a request that fails, a session that ends, hostile names; and whether
// all of it can be done with the keyboard.
import assert from 'node:assert/strict'
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'
import {start} from '../mock/server.mjs'
import {eventually, launch, open, patience, serious, settled} from './browser.mjs'

const pictures = join(import.meta.dirname, 'screenshots')

export async function states() {
  mkdirSync(pictures, {recursive: true})
  const browser = await launch()
  try {
    for (const scene of [
      stale,
      failing,
      signedOut,
      viewer,
      deployedAndMeasured,
      deployWithGPUs,
      otherLength,
      streams,
      hostile,
      keyboard,
      themes,
      narrow,
    ]) {
      const mock = await start({secured: [signedOut, viewer, deployedAndMeasured].includes(scene)})
      try {
        await scene(browser, mock)
        console.log(`${scene.name}: as it should be`)
      } catch (err) {
        throw new Error(`${scene.name}: ${err.message}`, {cause: err})
      } finally {
        mock.stop()
      }
    }
  } finally {
    await browser.close()
  }
}

async function stale(browser, {url}) {
  const {page, context} = await open(browser, url)
  await page.goto(url + '/ui/')
  await page.getByText('Live', {exact: true}).waitFor()
  await page.request.post(url + `/mock/drop/${10 * patience}`)
  await page.getByText('Stale since').waitFor()
  assert.ok(await page.getByRole('link', {name: 'digits', exact: true}).isVisible(), 'what was known stays')
  await page.screenshot({path: join(pictures, 'state-stale.png'), fullPage: true})
  assert.deepEqual(await serious(page), [])
  await page.request.post(url + '/mock/drop/0')
  await page.getByText('Stale since').waitFor({state: 'hidden'})
  await page.getByText('Live', {exact: true}).waitFor()
  await context.close()
}

async function failing(browser, {url}) {
  const {page, context} = await open(browser, url)
  await page.request.post(url + '/mock/break/' + encodeURIComponent('/scheduler'))
  await page.goto(url + '/ui/scaling')
  await page.getByText('Redis does not answer').waitFor()
  await page.screenshot({path: join(pictures, 'state-failed.png'), fullPage: true})
  assert.deepEqual(await serious(page), [])
  await page.request.post(url + '/mock/break/')
  await page.getByRole('button', {name: 'Try again'}).click()
  await page.getByText('scheduler-1 leads').waitFor()
  await page.getByText('Redis does not answer').waitFor({state: 'detached'})
  await context.close()
}

async function signedOut(browser, {url, world}) {
  const [[id, secret]] = [...world.secrets]
  const {page, context} = await open(browser, url)
  await page.goto(url + '/ui/models/digits-svm')
  await page.getByLabel('Key').fill('topsail_wrong')
  await page.getByRole('button', {name: 'Sign in'}).click()
  await page.getByText('No key has this secret').waitFor()
  assert.equal(await page.getByLabel('Key').inputValue(), '', 'a wrong key is not kept in the page')
  await page.getByLabel('Key').fill(secret)
  await page.getByRole('button', {name: 'Sign in'}).click()
  await page.getByRole('heading', {level: 1, name: 'digits-svm'}).waitFor()
  await page.getByRole('button', {name: 'Sign out'}).click()
  await page.getByText('Sign in to Topsail').waitFor()
  await page.getByLabel('Key').fill(secret)
  await page.getByRole('button', {name: 'Sign in'}).click()
  await page.getByRole('heading', {level: 1, name: 'digits-svm'}).waitFor()
  world.secrets.delete(id) // somebody revokes the key
  await page.request.post(url + '/mock/drop/0')
  await page.getByText('Sign in to Topsail').waitFor()
  await context.close()
}

async function viewer(browser, {url, world}) {
  world.key({name: 'guest', role: 'viewer'}, 'topsail_guest')
  const {page, context} = await open(browser, url, {key: 'topsail_guest'})
  for (const [path, button] of [
    ['/ui/', 'New app'],
    ['/ui/models', 'Deploy a model'],
    ['/ui/models/fraud-gbm', 'Roll back to 3'],
    ['/ui/models/digits-svm/7', 'Set replicas'],
    ['/ui/models/digits-svm/7', 'Pause scaling'],
    ['/ui/streams', 'Suspend scans'],
    ['/ui/streams', 'Forget scans'],
  ]) {
    await page.goto(url + path)
    assert.ok(await page.getByRole('button', {name: button}).isDisabled(), `${button} is not for viewers`)
  }
  assert.equal(await page.getByRole('link', {name: 'Keys'}).count(), 0)
  await context.close()
}

// Who deployed a version, when, with what and from which commit, and what its replicas measured: whoever may look sees it.
async function deployedAndMeasured(browser, {url, world}) {
  const at = new Date(Date.now() - 2 * 3600_000).toISOString()
  const commit = '3f1c0b9ad2e44f0a9d7be21c55e8a60f1b7d9c42-dirty'
  const performance = {
    since: at,
    answers: 1200,
    errors: 0.025,
    batches: 480,
    batch_mean: 2.5,
    p50_micros: 10_400,
    p99_micros: 31_000,
    throughput: 96,
  }
  Object.assign(world.versions.get('digits-svm:7'), {deployed: {by: 'ci', at, client: 'topsail-python/0.1.0', commit}})
  delete world.versions.get('tone:12').deployed
  for (const role of ['viewer', 'admin']) {
    world.key({name: `one-${role}`, role}, `topsail_${role}`)
    const {page, context, wrong} = await open(browser, url, {key: `topsail_${role}`})
    await page.route(/\/api\/v1\/models\/[^/]+\/versions\/[^/?]+$/, async (route) => {
      const answer = await route.fetch()
      const version = await answer.json()
      delete version.performance
      if (version.model === 'digits-svm') version.performance = performance
      await route.fulfill({response: answer, json: version})
    })
    await page.goto(url + '/ui/models/digits-svm/7')
    const facts = page.getByRole('region', {name: 'What it is'})
    assert.equal(await fact(facts, 'Deployed'), '2 h ago by ci, with topsail-python/0.1.0')
    assert.equal(await facts.locator('dt:text-is("Deployed") + dd time').getAttribute('datetime'), at)
    assert.equal(await fact(facts, 'Commit'), commit)
    const measured = page.getByRole('region', {name: 'Performance'})
    await measured.getByText('measured since 2 h ago, at all replicas').waitFor()
    assert.equal(await fact(measured, 'Time of a batch'), 'half within 10.4 ms, 99% within 31 ms')
    assert.equal(await fact(measured, 'Batch'), '2.5 inputs on average, in 480 batches')
    assert.equal(await fact(measured, 'Throughput'), '96/s – inputs of a replica while it runs a batch')
    assert.equal(await fact(measured, 'Errors'), '2.5 % of 1,200 answers')
    assert.deepEqual(await serious(page), [])
    await page.goto(url + '/ui/models/digits-svm')
    const row = page.getByRole('row').filter({has: page.getByRole('link', {name: '7', exact: true})})
    await row.getByRole('cell', {name: '2 h ago by ci', exact: true}).waitFor()

    await page.goto(url + '/ui/models/tone/12') // of which neither is known
    assert.equal(await fact(facts, 'Deployed'), 'not known')
    assert.equal(await facts.locator('dt:text-is("Commit")').count(), 0)
    await measured.getByText('Nothing is measured yet.').waitFor()
    assert.deepEqual(wrong, [])
    await context.close()
  }
}

// fact is what a list of facts says of one.
async function fact(list, term) {
  const text = await list.locator(`dt:text-is("${term}") + dd`).innerText()
  return text.replaceAll(/\s+/g, ' ').trim()
}

// A version whose inputs have another length is refused, and made current all the same where that is wanted.
async function otherLength(browser, {url}) {
  const {page, context, wrong} = await open(browser, url)
  const asked = []
  const says = 'app "digits" is used with inputs of length 64, and this one takes 784'
  await page.route(/\/models\/digits-svm\/(current|versions)(\?|$)/, async (route) => {
    const query = new URL(route.request().url()).searchParams
    if (route.request().method() === 'GET') return route.fallback()
    asked.push(query.get('replace_contract'))
    if (query.get('replace_contract') === 'true') return route.fallback()
    await route.fulfill({status: 409, json: {title: 'Conflict', status: 409, code: 'contract', detail: says}})
  })
  await page.goto(url + '/ui/models/digits-svm')
  await page.getByRole('button', {name: 'Make current'}).last().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(says).waitFor()
  assert.ok(await dialog.getByRole('button', {name: 'Make current'}).isDisabled(), 'it is refused')
  await dialog.getByLabel('Make it current all the same').check()
  await dialog.getByText(says).waitFor({state: 'hidden'})
  await page.screenshot({path: join(pictures, 'state-other-length.png')})
  assert.deepEqual(await serious(page), [])
  await dialog.getByRole('button', {name: 'Make current'}).click()
  await dialog.waitFor({state: 'hidden'})
  await page.getByRole('button', {name: 'Deploy a version'}).click()
  await dialog.getByRole('textbox', {name: 'Command'}).fill('./serve')
  await dialog.getByRole('button', {name: 'Deploy'}).click()
  await dialog.getByText(says).waitFor()
  await dialog.getByLabel('Make it current all the same').check()
  await dialog.getByRole('button', {name: 'Deploy'}).click()
  await dialog.waitFor({state: 'hidden'})
  assert.deepEqual(asked, [null, 'true', 'true', null, 'true'])
  assert.deepEqual(wrong, [])
  await context.close()
}

// A version is deployed to a cluster with all that the form offers, on a wide page and on a narrow one.
async function deployWithGPUs(browser, {url, world}) {
  for (const width of [1280, 390]) {
    const {page, context, wrong} = await open(browser, url, {width})
    await page.goto(url + '/ui/models/digits-svm')
    await page.getByRole('button', {name: 'Deploy a version'}).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Version').fill(`gpu-${width}`)
    await form.getByRole('textbox', {name: 'Command'}).fill('./serve')
    await form.getByLabel('Replicas').selectOption('As many as demand needs')
    await form.getByLabel('At most').fill('6')
    for (const part of ['Batches', 'Environment, resources, labels', 'Driver, secrets, files']) await form.getByText(part).click()
    await form.getByLabel('Strategy').selectOption('fixed')
    await form.getByLabel('Size', {exact: true}).fill('8')
    await form.getByLabel('Fill smaller batches').check()
    await form.getByLabel('Delay').fill('2')
    await form.getByLabel('GPUs').fill('2')
    await form.getByLabel('GPU memory').fill('16000')
    await form.getByLabel('Driver').selectOption('raw_exec')
    await form.getByLabel('Secrets').fill('HF_TOKEN=item-of-hf')
    await form.getByLabel('Files').fill('weights')
    await form.getByRole('button', {name: 'Deploy'}).click()
    await form.getByText('is not CHECKSUM@URL').waitFor()
    await form.getByLabel('Files').fill('local/w=sha256:abc@https://models.example/w.tar.gz')
    await page.screenshot({path: join(pictures, `state-deploy-${width}.png`)})
    await page.setViewportSize({width, height: 2000}) // all of the form
    await page.screenshot({path: join(pictures, `state-deploy-whole-${width}.png`)})
    assert.deepEqual(await serious(page), [])
    const tooWide = await form.evaluate((node) => node.scrollWidth - node.clientWidth)
    assert.ok(tooWide <= 0, `the form is ${tooWide} px wider than its dialog`)
    await form.getByRole('button', {name: 'Deploy'}).click()
    await page.getByRole('heading', {level: 1, name: `digits-svm:gpu-${width}`}).waitFor()
    const made = world.versions.get(`digits-svm:gpu-${width}`)
    assert.deepEqual(made.scale, {min: 1, max: 6})
    assert.deepEqual(made.batch, {strategy: 'fixed', max_size: 8, delay_micros: 2000, pad: true})
    assert.deepEqual(made.resources, {gpu: {count: 2, memory_mb: 16000}})
    assert.deepEqual(made.secrets, {HF_TOKEN: 'item-of-hf'})
    assert.equal(made.driver, 'raw_exec')
    assert.deepEqual(made.artifacts, [{source: 'https://models.example/w.tar.gz', checksum: 'sha256:abc', destination: 'local/w'}])
    const facts = page.getByRole('region', {name: 'What it is'})
    for (const shown of ['fixed, 8 each, waits up to 2 ms', '2 GPUs with 16,000 MB', 'HF_TOKEN', 'w.tar.gz in local/w']) {
      await facts.getByText(shown).waitFor()
    }
    assert.equal(await fact(facts, 'Driver'), 'raw_exec')
    assert.equal(await fact(facts, 'Files'), 'https://models.example/w.tar.gz in local/w')
    assert.equal(await page.getByText('item-of-hf').count(), 0, 'a page does not say where a secret is')
    await page.screenshot({path: join(pictures, `state-deployed-${width}.png`)})
    assert.deepEqual(wrong, [])
    await context.close()
  }
}

// A stream is suspended by one person, and resumed and forgotten by another, whose page sees each change by itself.
async function streams(browser, {url}) {
  const {page, context, wrong} = await open(browser, url)
  await context.addInitScript(asksNeverByItself)
  const other = await context.newPage()
  const row = (of) => of.getByRole('row', {name: /^wine data/})
  for (const one of [page, other]) {
    await one.goto(url + '/ui/streams')
    await row(one).getByText('Open').waitFor()
    await one.getByText('Live', {exact: true}).waitFor()
  }
  await page.getByRole('button', {name: 'Suspend wine', exact: true}).click()
  await page.getByLabel('Why').fill('version 8 is no better')
  await page.screenshot({path: join(pictures, 'state-suspend.png')})
  assert.deepEqual(await serious(page), [])
  await page.getByRole('dialog').getByRole('button', {name: 'Suspend'}).click()
  await page.getByText('wine is suspended.').waitFor()

  await row(other).getByText('by local: version 8 is no better').waitFor()
  assert.ok(await other.getByRole('button', {name: 'Forget wine', exact: true}).isDisabled(), 'what is suspended is kept')
  await other.getByRole('button', {name: 'Resume wine', exact: true}).click()
  await other.getByRole('dialog').getByText('version 8 is no better').first().waitFor()
  await other.screenshot({path: join(pictures, 'state-resume.png')})
  assert.deepEqual(await serious(other), [])
  await other.getByRole('dialog').getByRole('button', {name: 'Resume'}).click()
  await row(page).getByText('Open').waitFor()

  await other.getByRole('button', {name: 'Forget tills'}).click()
  await other.getByText('is forgotten, unless a process serves it').waitFor()
  await other.getByRole('dialog').getByRole('button', {name: 'Forget'}).click()
  await page.getByRole('row', {name: /^tills/}).waitFor({state: 'detached'})

  await page.request.post(url + '/mock/break/' + encodeURIComponent('/streams'))
  await page.getByRole('button', {name: 'Suspend scans'}).click()
  await page.getByRole('dialog').getByRole('button', {name: 'Suspend'}).click()
  await page.getByRole('dialog').getByText('Redis does not answer').waitFor()
  await page.getByRole('dialog').getByRole('button', {name: 'Cancel'}).click()
  await page.request.post(url + '/mock/break/')
  await page.goto(url + '/ui/audit?kind=stream')
  await page.getByText('deleted stream tills').waitFor()
  assert.deepEqual(wrong, [])
  await context.close()
}

// asksNeverByItself runs in a page, whose lists are asked for every few seconds else: what it shows comes of an event.
function asksNeverByItself() {
  const every = globalThis.setInterval
  globalThis.setInterval = (act, ms, ...more) => every(act, ms > 2000 ? 2 ** 31 - 1 : ms, ...more)
}

async function hostile(browser, {url, world}) {
  const script = '<img src=x onerror="document.title=`owned`"><script>document.title=`owned`</script>'
  const name = '"><b>x'
  world.app({
    name,
    input_type: 'strings',
    latency_slo_micros: 1000,
    models: ['tone'],
    default_output: script,
    example: script,
    description: script,
  })
  world.app({name: 'staged', input_type: 'strings', latency_slo_micros: 1000, stages: [{name: script, model: 'tone'}]})
  const version = world.versions.get('tone:12')
  Object.assign(version, {
    labels: [script],
    command: [script],
    stages: [{name: 'decode', code: script}],
    env: {[script]: script},
    pin: {count: 1, reason: script},
  })
  for (const replica of world.replicas.values()) replica.reason = script
  world.decide({model: 'tone', version: '12', from: 1, to: 2, rule: script, reason: script})
  world.audit(script, 'update', 'app', name, {a: script}, {a: script + '!'})
  world.stream({
    name,
    kind: 'data',
    app: script,
    input: [script],
    output: script,
    dead_letter: script,
    suspension: {since: script, by: script, reason: script},
  })
  world.key({name: script, role: 'viewer'})
  const {page, context, wrong} = await open(browser, url)
  const app = encodeURIComponent(name)
  for (const path of [
    '/ui/',
    `/ui/apps/${app}`,
    `/ui/apps/${app}?tab=models`,
    `/ui/apps/${app}?tab=usage`,
    `/ui/apps/${app}?tab=try`,
    `/ui/apps/${app}?tab=settings`,
    '/ui/apps/staged?tab=models',
    '/ui/apps/staged?tab=settings',
    '/ui/models/tone/12',
    '/ui/models/tone/12?tab=job',
    '/ui/models/tone/12?tab=usage',
    '/ui/streams',
    '/ui/usage',
    '/ui/replicas',
    '/ui/scaling',
    '/ui/audit',
    '/ui/keys',
  ]) {
    await page.goto(url + path)
    await page.waitForFunction(saysAsText)
    await settled(page)
    assert.doesNotMatch(await page.title(), /owned/, path)
    assert.equal(await page.locator('img').count(), 0, path)
    assert.ok(
      (await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0,
      `${path} is too wide`,
    )
  }
  assert.deepEqual(wrong, [])
  await context.close()
}

// saysAsText runs in a page: whether it shows something hostile as the text that it is.
function saysAsText() {
  const fields = [...document.querySelectorAll('input, textarea')].map((field) => field.value)
  return [document.querySelector('main')?.innerText ?? '', ...fields].some((text) => /"><b>x|title=`owned`/.test(text))
}

async function keyboard(browser, {url}) {
  const {page, context} = await open(browser, url)
  await page.goto(url + '/ui/')
  await page.getByRole('link', {name: 'digits', exact: true}).waitFor()
  await page.keyboard.press('Tab')
  await focused(page, 'Skip to the content')
  await page.keyboard.press('Enter')
  await page.locator('#main:focus').waitFor()
  await page.keyboard.press('/')
  await page.locator('#search:focus').waitFor()
  await page.keyboard.type('fraud-gbm')
  await page.getByRole('option').first().waitFor()
  await page.screenshot({path: join(pictures, 'state-search.png')})
  assert.deepEqual(await serious(page), [])
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', {level: 1, name: /fraud-gbm/}).waitFor()
  await page.locator('#main:focus').waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await page.getByRole('heading', {level: 1, name: 'Replicas'}).waitFor()

  await page.goto(url + '/ui/models/fraud-gbm')
  const opener = page.getByRole('button', {name: 'Roll back to 3'})
  await opener.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.locator('dialog :focus').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({state: 'hidden'})
  await focused(page, 'Roll back to 3')

  await page.goto(url + '/ui/')
  const sorted = (how) => page.locator(`th[aria-sort=${how}]`, {hasText: 'Throughput'}).waitFor()
  await page.getByRole('columnheader', {name: 'Throughput'}).getByRole('button').focus()
  await page.keyboard.press('Enter')
  await sorted('descending')
  await page.keyboard.press('Enter')
  await sorted('ascending')
  const order = ['sentiment', 'read', 'wine', 'fraud', 'digits', 'scans']
  await eventually('the apps are in order', async () => `${await page.locator('tbody tr td:first-child').allInnerTexts()}` === `${order}`)

  await page.goto(url + '/ui/apps/digits')
  await page.getByRole('button', {name: 'Latency as a table'}).click()
  await page.getByRole('table', {name: 'Latency'}).getByRole('row').nth(5).waitFor()
  await page.screenshot({path: join(pictures, 'state-table.png'), fullPage: true})
  assert.deepEqual(await serious(page), [])
  await context.close()
}

async function themes(browser, {url}) {
  const {page, context} = await open(browser, url, {theme: 'dark'})
  await page.goto(url + '/ui/')
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const dark = await ground()
  await page.getByRole('button', {name: /^Theme/}).click()
  await eventually('another theme has other colours', async () => (await ground()) !== dark)
  const light = await ground()
  await page.reload()
  await page.getByRole('button', {name: 'Theme: light. Change it'}).waitFor()
  await eventually('it is kept', async () => (await ground()) === light)
  await context.close()
}

async function narrow(browser, {url}) {
  const {page, context} = await open(browser, url, {width: 390, height: 844})
  await page.goto(url + '/ui/')
  const menu = page.getByRole('button', {name: 'Pages'})
  await menu.click()
  await page.screenshot({path: join(pictures, 'state-menu.png')})
  assert.deepEqual(await serious(page), [])
  await page.getByRole('link', {name: 'Cluster'}).click()
  await page.getByRole('heading', {level: 1, name: 'Cluster'}).waitFor()
  await eventually('the menu is closed', async () => (await menu.getAttribute('aria-expanded')) === 'false')
  await context.close()
}

function focused(page, text) {
  return page.waitForFunction((text) => document.activeElement.textContent.trim() === text, text)
}

if (process.argv[1] === import.meta.filename) await states()
