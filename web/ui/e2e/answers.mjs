// Queries from the page of a real Topsail, whose models are in Python: a chat that is shown as it comes, and an image as a tensor.
// topsail.mjs says what is needed; python3 has the SDK.
import assert from 'node:assert/strict'
import {copyFileSync, existsSync, mkdirSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {eventually, launch, open, serious} from './browser.mjs'
import {withTopsail} from './topsail.mjs'

const pictures = join(import.meta.dirname, 'screenshots')
const signature = `{ inputs = [{ name = "image", type = "uint8", shape = [32, 48, 3] }, { name = "prompt", type = "string" }],
  outputs = [{ name = "words", type = "string" }, { name = "colour", type = "float32", shape = [3] }] }`
const config = `
[[app]]
name = "bot"
input_type = "chat"
default_output = ""
latency_slo_micros = 60000000
slo_between_micros = 60000000
cache = { off = true }
models = ["talk"]

[[app]]
name = "caption"
input_type = "tensors"
default_output = ""
latency_slo_micros = 60000000
signature = ${signature}
models = ["look"]

[[model]]
name = "talk"
version = "1"
input_type = "chat"
command = ["python3", "models.py"]

[[model]]
name = "look"
version = "1"
signature = ${signature}
command = ["python3", "-m", "topsail", "models.py:look"]
`

export async function answers() {
  mkdirSync(pictures, {recursive: true})
  const browser = await launch()
  try {
    mkdirSync(join(process.env.FLOW_DIR, 'answers'))
    copyFileSync(join(import.meta.dirname, 'models.py'), join(process.env.FLOW_DIR, 'answers', 'models.py'))
    await withTopsail('answers', config, async ({web, dir}) => {
      for (const scene of [chat, image]) {
        const {page, context, wrong} = await open(browser, web)
        try {
          await scene(page, web, dir)
          assert.deepEqual(wrong, [])
        } catch (err) {
          await page.screenshot({path: join(pictures, `answers-${scene.name}-FAILED.png`), fullPage: true}).catch(() => {})
          throw err
        } finally {
          await context.close()
        }
      }
    })
  } finally {
    await browser.close()
  }
}

async function picture(page, name) {
  await page.evaluate(() => scrollTo(0, 0))
  await page.screenshot({path: join(pictures, `answers-${name}.png`), fullPage: true})
}

async function chat(page, web, dir) {
  await page.goto(`${web}/ui/apps/bot?tab=try`)
  const log = page.getByRole('log', {name: 'Messages'})
  const say = async (text) => {
    await page.getByLabel('Message', {exact: true}).fill(text)
    await page.getByRole('button', {name: 'Send', exact: true}).click()
  }
  await say('Hello')
  await log.getByText('You said Hello, which is message 1.').waitFor()
  assert.equal(await log.getAttribute('aria-busy'), 'true', 'half of the answer is there')
  assert.equal(await log.getByText('That is all').count(), 0)
  await picture(page, 'chat-half')
  writeFileSync(join(dir, 'go'), '')
  await log.getByText('which is message 1. That is all of the answer.').waitFor()
  await log.getByText('First part').waitFor()
  assert.notEqual(await log.getAttribute('aria-busy'), 'true')

  await say('And again')
  await log.getByText('You said And again, which is message 3. That is all of the answer.').waitFor()
  assert.deepEqual(await serious(page), [])
  await picture(page, 'chat')

  await say('no end')
  await log.getByText('which is message 5. And And').waitFor()
  await page.getByRole('button', {name: 'Stop', exact: true}).click()
  await log.getByText('Stopped.').waitFor()
  await eventually('the model is stopped', () => existsSync(join(dir, 'stopped')))
  await picture(page, 'chat-stopped')
}

async function image(page, web) {
  await page.goto(`${web}/ui/apps/caption?tab=try`)
  await page.getByRole('button', {name: 'Predict', exact: true}).waitFor()
  const png = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement('canvas'), {width: 96, height: 64})
    const context = canvas.getContext('2d')
    context.fillStyle = 'rgb(200 100 50)'
    context.fillRect(0, 0, 96, 64)
    return canvas.toDataURL('image/png').split(',')[1]
  })
  await page.getByLabel('Image for image').setInputFiles({name: 'orange.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64')})
  await page.getByText('orange.png, 96 × 64, as 48 × 32').waitFor()
  const input = page.getByLabel('Input', {exact: true})
  await input.fill(JSON.stringify({...JSON.parse(await input.inputValue()), prompt: 'orange'}))
  await page.getByRole('button', {name: 'Predict', exact: true}).click()
  await page.getByText('Answered in').waitFor()
  await picture(page, 'image')
  const said = JSON.parse(await page.locator('pre').filter({hasText: 'query_id'}).innerText())
  assert.deepEqual([said.outputs, said.default], [{words: 'orange: 48 by 32', colour: [200, 100, 50]}, false])
  assert.deepEqual(await serious(page), [])
}
