import {describe, expect, it} from 'vitest'
import {Client, path, Refusal} from '../src/api/client'

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  const asked: {url: string; init: RequestInit}[] = []
  const fetcher = async (url: string | URL | Request, init?: RequestInit) => {
    asked.push({url: String(url), init: init ?? {}})
    return new Response(status === 204 ? null : body, {status, headers})
  }
  return {client: new Client('/api/v1', fetcher as typeof fetch), asked}
}

describe('Client', () => {
  it('gives an object with its version', async () => {
    const {client, asked} = answering(200, '{"name":"a"}', {ETag: '"7"'})
    expect(await client.tagged('GET', path('apps', 'a/b ü'))).toEqual({value: {name: 'a'}, etag: '"7"'})
    expect(asked[0]?.url).toBe('/api/v1/apps/a%2Fb%20%C3%BC')
  })

  it('sends what a change needs', async () => {
    const {client, asked} = answering(200, '{}')
    await client.send('PUT', '/apps/a', {body: {x: 1}, ifMatch: '"7"', query: {dry_run: true, none: undefined}})
    expect(asked[0]?.url).toBe('/api/v1/apps/a?dry_run=true')
    expect(asked[0]?.init.headers).toMatchObject({'If-Match': '"7"', 'Content-Type': 'application/json'})
  })

  it('reads problems', async () => {
    const {client} = answering(412, '{"type":"about:blank","title":"Changed","status":412,"detail":"Read it again.","code":"conflict"}')
    const err = await client.get('/apps/a').catch((err: unknown) => err)
    expect(err).toBeInstanceOf(Refusal)
    expect(err).toMatchObject({message: 'Read it again.', status: 412, conflict: true})
  })

  it('tells what is in use from what was changed', async () => {
    const {client} = answering(409, '{"title":"In use","detail":"Unlink it.","code":"in_use"}')
    await expect(client.get('/models/m')).rejects.toMatchObject({conflict: false, code: 'in_use'})
  })

  it("survives a proxy's page", async () => {
    const {client} = answering(502, '<html>Bad gateway</html>')
    await expect(client.get('/apps')).rejects.toThrow('The server answered 502')
  })

  it('says when the session has ended', async () => {
    const {client} = answering(401, '{"title":"Unauthorised","detail":"Sign in."}')
    let told = 0
    client.onUnauthorised = () => told++
    await expect(client.get('/apps')).rejects.toThrow('Sign in.')
    expect(told).toBe(1)
  })

  it('has no value where there is none', async () => {
    const {client} = answering(204, '')
    expect(await client.send('DELETE', '/apps/a')).toBeUndefined()
  })

  it('says what to do where nobody answers', async () => {
    const client = new Client('/api/v1', () => Promise.reject(new TypeError('failed to fetch')))
    await expect(client.get('/apps')).rejects.toThrow('cannot be reached')
  })
})
