// Queries from the page whose answers are shown as they come, and images as inputs.
import assert from 'node:assert/strict'
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'
import {start} from '../mock/server.mjs'
import {eventually, launch, open, serious} from './browser.mjs'

const pictures = join(import.meta.dirname, 'screenshots')
const begun = 6 // parts of an answer, which then goes on when it may

export async function trying() {
  mkdirSync(pictures, {recursive: true})
  const browser = await launch()
  try {
    for (const scene of [chat, chatThatFails, stopped, inParts, image]) {
      const mock = await start()
      mock.world.app({name: 'assistant', input_type: 'chat', latency_slo_micros: 5e6, default_output: 'null', models: ['tone']})
      mock.world.app({
        name: 'caption',
        input_type: 'tensors',
        latency_slo_micros: 5e6,
        default_output: '""',
        models: ['tone'],
        signature: {
          inputs: [
            {name: 'image', type: 'uint8', shape: [32, 48, 3]},
            {name: 'mask', type: 'float32', shape: [3, -1, -1]},
            {name: 'prompt', type: 'string', shape: []},
          ],
        },
      })
      const {page, context, wrong} = await open(browser, mock.url)
      try {
        await scene(page, mock)
        assert.deepEqual(wrong, [])
        console.log(`${scene.name}: as it should be`)
      } catch (err) {
        await page.screenshot({path: join(pictures, `trying-${scene.name}-FAILED.png`), fullPage: true}).catch(() => {})
        throw new Error(`${scene.name}: ${err.message}`, {cause: err})
      } finally {
        await context.close()
        mock.stop()
      }
    }
  } finally {
    await browser.close()
  }
}

const log = (page) => page.getByRole('log', {name: 'Messages'})
const picture = (page, name) => page.screenshot({path: join(pictures, `trying-${name}.png`), fullPage: true})

async function say(page, text) {
  await page.getByLabel('Message', {exact: true}).fill(text)
  await page.getByRole('button', {name: 'Send', exact: true}).click()
}

async function chat(page, {url, world}) {
  await page.goto(`${url}/ui/apps/assistant?tab=try`)
  await say(page, 'Hello')
  await log(page).getByText('would say much more about it, word by word.').waitFor()
  await log(page).getByText('First part').waitFor()

  world.mostParts = begun
  await page.getByLabel('Message', {exact: true}).fill('And again')
  await page.getByRole('button', {name: 'Send', exact: true}).click({trial: true}) // once the first answer has ended
  const sent = page.waitForRequest((request) => request.url().endsWith('/try'))
  await page.getByLabel('Message', {exact: true}).press('Enter')
  assert.deepEqual(
    (await sent).postDataJSON().input.messages.map(({role}) => role),
    ['user', 'assistant', 'user'],
  )
  await log(page).getByText('This is answer 2: you').waitFor()
  assert.equal(await log(page).getAttribute('aria-busy'), 'true', 'an answer that comes is half of it')
  assert.equal(await log(page).getByText('word by word.').count(), 1, 'the second answer is not there yet')
  await picture(page, 'chat')
  assert.deepEqual(await serious(page), [])
  await page.setViewportSize({width: 390, height: 800})
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'it fits a phone')
  await picture(page, 'chat-narrow')
  await page.setViewportSize({width: 1280, height: 900})
  world.mostParts = Infinity
  await log(page).getByText('word by word.').nth(1).waitFor()

  await page.getByRole('button', {name: 'New chat'}).click()
  await log(page).getByText('Send a message').waitFor()
  const anew = page.waitForRequest((request) => request.url().endsWith('/try'))
  await say(page, 'Hello')
  assert.equal((await anew).postDataJSON().input.messages.length, 1, 'a new chat begins without the old one')
}

async function chatThatFails(page, {url}) {
  await page.goto(`${url}/ui/apps/assistant?tab=try`)
  await say(page, 'a default')
  await log(page).getByText('This is the default output: No connected models found for query').waitFor()
  await say(page, 'be cut')
  await log(page).getByText('The answer was cut: The replica left').waitFor()
  await log(page).getByText('This is answer 1:').waitFor() // the default is not sent along
  await page.request.post(url + '/mock/break/' + encodeURIComponent('/apps/assistant/try'))
  await say(page, 'Hello')
  await log(page).getByText('Redis does not answer').waitFor()
  assert.equal(await page.getByLabel('Message', {exact: true}).inputValue(), 'Hello', 'it can be sent again')
  await picture(page, 'chat-failures')
  assert.deepEqual(await serious(page), [])
}

async function stopped(page, {url, world}) {
  world.mostParts = begun
  await page.goto(`${url}/ui/apps/assistant?tab=try`)
  await say(page, 'Hello')
  await log(page).getByText('This is').waitFor()
  await page.getByRole('button', {name: 'Stop', exact: true}).click()
  await log(page).getByText('Stopped.').waitFor()
  await eventually('the request is closed', () => world.cancelled === 1)

  await say(page, 'Hello again')
  await log(page).getByText('This is answer 2').waitFor()
  await page
    .getByRole('tab', {name: 'Settings'})
    .or(page.getByRole('link', {name: 'Settings'}))
    .first()
    .click()
  await page.getByLabel('Latency objective').waitFor()
  await eventually('who leaves the page closes it, too', () => world.cancelled === 2)
}

async function inParts(page, {url}) {
  await page.goto(`${url}/ui/apps/sentiment?tab=try`)
  await page.getByLabel('Input', {exact: true}).fill('good film')
  await page.getByLabel('Show the answer as it comes').check()
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  const answer = page.getByRole('log', {name: 'Answer in parts'})
  await answer.getByText('you said “good film”').waitFor()
  await page.getByText('word by word.').waitFor()
  await page.getByText('Prediction', {exact: true}).waitFor()
  assert.equal(await page.getByRole('button', {name: 'Stop'}).count(), 0)
  await picture(page, 'in-parts')
  assert.deepEqual(await serious(page), [])
  await page.getByLabel('Input', {exact: true}).fill('["a", "b"]')
  await page.getByText('Several inputs cannot be answered in parts').waitFor()
  await page.getByLabel('Show the answer as it comes').uncheck()
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  await page.getByText('Answered in').waitFor()
}

async function image(page, {url}) {
  await page.goto(`${url}/ui/apps/caption?tab=try`)
  const input = page.getByLabel('Input', {exact: true})
  await page.getByRole('button', {name: 'Predict', exact: true}).waitFor()
  const png = await page.screenshot()
  await page.getByLabel('Image for image').setInputFiles({name: 'page.png', mimeType: 'image/png', buffer: png})
  await page.getByText('page.png, 1280 × 900, as 48 × 32').waitFor()
  const {image, prompt} = JSON.parse(await input.inputValue())
  assert.deepEqual([image.length, image[0].length, image[0][0].length, prompt], [32, 48, 3, 'a text'])
  assert.ok(image.flat(2).every((n) => Number.isInteger(n) && n >= 0 && n <= 255))

  await page.getByLabel('Image for mask').setInputFiles({name: 'page.png', mimeType: 'image/png', buffer: png})
  await page.getByText(/page\.png, 1280 × 900, as 2\d\d × 1\d\d/).waitFor()
  const {mask} = JSON.parse(await input.inputValue())
  assert.equal(mask.length, 3)
  assert.ok(mask.flat(2).every((n) => n >= 0 && n <= 1))
  assert.ok(await page.getByRole('button', {name: 'Predict', exact: true}).isEnabled(), 'it is small enough to be sent')
  await picture(page, 'image')
  assert.deepEqual(await serious(page), [])
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  await page.getByText('Answered in').waitFor()

  await page.getByLabel('Image for image').setInputFiles({name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('no image')})
  await page.getByText('notes.txt is not an image that this browser reads').waitFor()
}
