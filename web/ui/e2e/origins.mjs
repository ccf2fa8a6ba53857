// What pages of other sites can do at the query port, by a real browser's own rules: nothing, unless their origin is allowed, and
// then they read every answer, refusals too.
//
//   FLOW_COMMAND   the command of a model that takes doubles and answers their sum; topsail.mjs says what else is needed
import assert from 'node:assert/strict'
import {once} from 'node:events'
import {createServer} from 'node:http'
import {connect} from 'node:net'
import {setTimeout as pause} from 'node:timers/promises'
import {eventually as until, launch} from './browser.mjs'
import {withTopsail} from './topsail.mjs'

const question = '{"input": [1, 2]}'
const lesson = '{"uid": "ann", "input": [1, 2], "label": 3}'

export async function origins() {
  const site = createServer((_, answer) => answer.setHeader('Content-Type', 'text/html').end('<!doctype html><title>shop</title>'))
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  // One machine by two names: pages of the first are of another origin, and those of the second of another site, too.
  const shop = `http://localhost:${site.address().port}`
  const other = `http://127.0.0.1:${site.address().port}`
  const browser = await launch()
  try {
    await withTopsail('closed', config(''), async (at) => {
      for (const origin of [shop, other]) await refused(browser, origin, at)
    })
    await withTopsail('open', config(`allowed_origins = ["${shop}"]`), async (at) => {
      await refused(browser, other, at)
      await allowed(browser, shop, at)
    })
    await withTopsail('narrow', config(`allowed_origins = ["${shop}"]\nmax_connections = 1`), (at) => told(browser, shop, at))
  } finally {
    await browser.close()
    site.close()
  }
}

// config is that of an app that learns, with settings of the gateway.
function config(gateway) {
  const command = JSON.stringify(process.env.FLOW_COMMAND)
  const model = (name) => `[[model]]\nname = "${name}"\nversion = "1"\ninput_type = "doubles"\ncommand = [${command}]\n`
  return (
    `[gateway]\n${gateway}\n` +
    '[[app]]\nname = "sum"\ninput_type = "doubles"\ndefault_output = "-1"\nlatency_slo_micros = 60000000\nmodels = ["one", "two"]\n' +
    `policy = {kind = "exp3"}\n${model('one')}${model('two')}`
  )
}

// learned is what the policy knows, and how often somebody was answered at all.
async function learned({gateway, web}) {
  const insight = await (await fetch(`${web}/api/v1/apps/sum/insight`)).json()
  const usage = await (await fetch(`${web}/api/v1/apps/sum/usage`)).text()
  return {state: JSON.stringify(insight.learned), usage, gateway}
}

// visit opens a page of an origin, and collects the statuses of what it sends, which the page itself may not get to see.
async function visit(browser, origin, look) {
  const page = await browser.newPage()
  const statuses = []
  page.on('response', (answer) => !answer.url().startsWith(origin) && statuses.push(answer.status()))
  try {
    await page.goto(origin)
    await look(page, statuses)
  } finally {
    await page.close()
  }
}

// ask has a page fetch something, and returns what it got to know.
const ask = (page, url, options) =>
  page.evaluate(
    async ([url, options]) => {
      try {
        const answer = await fetch(url, options)
        return {type: answer.type, status: answer.status, text: await answer.text(), headers: Object.fromEntries(answer.headers)}
      } catch (err) {
        return {error: err.name}
      }
    },
    [url, options],
  )

const plain = {'Content-Type': 'text/plain'}
const json = {'Content-Type': 'application/json'}

// refused tries all ways that a page has to send something elsewhere. None is answered to it, and none has an effect.
async function refused(browser, origin, at) {
  const before = await learned(at)
  await visit(browser, origin, async (page, statuses) => {
    for (const [path, body] of [
      ['/sum/predict', question],
      ['/sum/update', lesson],
    ]) {
      const url = at.gateway + path
      for (const headers of [json, plain]) {
        assert.deepEqual(
          await ask(page, url, {method: 'POST', body, headers}),
          {error: 'TypeError'},
          `${path} as ${headers['Content-Type']}`,
        )
      }
      // What needs no permission of the server is sent, and refused there.
      statuses.length = 0
      const blind = await ask(page, url, {method: 'POST', body, mode: 'no-cors', headers: plain})
      assert.equal(blind.type, 'opaque')
      assert.deepEqual(statuses, [403], `${path} without CORS`)
      statuses.length = 0
      assert.ok(await page.evaluate(([url, body]) => navigator.sendBeacon(url, body), [url, body]))
      await until('the beacon', () => statuses.length > 0)
      assert.deepEqual(statuses, [403], `${path} as a beacon`)
      statuses.length = 0
      await page.evaluate(
        ([url, body]) => {
          document.body.innerHTML = `<iframe name=there></iframe><form method=post enctype=text/plain target=there><input></form>`
          const form = document.querySelector('form')
          const [name, value] = body.split(': ', 2)
          form.action = url
          Object.assign(form.querySelector('input'), {name, value})
          form.submit()
        },
        [url, body],
      )
      await until('the form', () => statuses.length > 0)
      assert.deepEqual(statuses, [403], `${path} as a form`)
    }
    assert.deepEqual(await ask(page, at.gateway + '/health'), {error: 'TypeError'}, 'an answer is read')
  })
  assert.deepEqual(await learned(at), before)
}

// allowed asks and teaches as a page of the shop does, and reads all that it is answered.
async function allowed(browser, origin, at) {
  const before = await learned(at)
  await visit(browser, origin, async (page) => {
    const headers = {...json, 'X-Request-Id': 'order-1', 'X-Topsail-Timing': '1', 'X-Timeout-Ms': '60000'}
    const answer = await ask(page, at.gateway + '/sum/predict', {method: 'POST', body: question, headers})
    assert.equal(answer.status, 200, JSON.stringify(answer))
    assert.equal(JSON.parse(answer.text).output, 3)
    assert.equal(answer.headers['x-request-id'], 'order-1')
    assert.match(answer.headers['server-timing'], /dur=/)
    for (const headers of [json, plain]) {
      const taught = await ask(page, at.gateway + '/sum/update', {method: 'POST', body: lesson, headers})
      assert.equal(taught.status, 200, JSON.stringify(taught))
    }
    for (const [path, body, status] of [
      ['/sum/predict', '{"input": "no"}', 400],
      ['/none/predict', question, 404],
      ['/sum/predict', ' '.repeat(17 << 20), 413],
    ]) {
      const wrong = await ask(page, at.gateway + path, {method: 'POST', body, headers: json})
      assert.equal(wrong.status, status, JSON.stringify(wrong).slice(0, 500))
      assert.ok(JSON.parse(wrong.text).cause)
    }
    // By a name that is not the gateway's it is refused, too, and learns why.
    const alias = at.gateway.replace('127.0.0.1', 'evil.localhost')
    for (const headers of [plain, json]) {
      const named = await ask(page, alias + '/sum/predict', {method: 'POST', body: question, headers})
      assert.equal(named.status, 403, JSON.stringify(named))
      assert.match(JSON.parse(named.text).cause, /gateway\.hosts/)
    }
  })
  assert.notEqual((await learned(at)).state, before.state)
}

// told is refused for want of connections, and reads why and when to come again.
async function told(browser, origin, at) {
  const {hostname, port} = new URL(at.gateway)
  await visit(browser, origin, async (page) => {
    let got
    await until('a refusal', async () => {
      const busy = connect(port, hostname) // its body does not come, and it is answered until then
      busy.on('error', () => {})
      busy.write('POST /sum/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{')
      await pause(20)
      got = await ask(page, at.gateway + '/sum/predict', {method: 'POST', body: question, headers: json})
      busy.destroy()
      return got.status === 503
    })
    assert.equal(got.headers['retry-after'], '1')
    assert.match(JSON.parse(got.text).cause, /again in a second/)
  })
}
