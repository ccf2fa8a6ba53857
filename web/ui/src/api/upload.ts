import {Refusal} from './client'
import type {Artifact, Problem} from './schema'

// upload stores a bundle, and says meanwhile which share of it is there. fetch cannot
// report what was sent, hence the older interface.
export function upload(bundle: Blob, progress: (share: number) => void, signal: AbortSignal): Promise<Artifact> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', '/api/v1/artifacts')
    request.setRequestHeader('Content-Type', 'application/zip')
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total)
    }
    request.onload = () => {
      if (request.status === 200 || request.status === 201) resolve(JSON.parse(request.responseText) as Artifact)
      else reject(new Refusal(problem(request)))
    }
    request.onerror = () => reject(new Error('The upload broke off. Choose the bundle again.'))
    request.onabort = () => reject(new DOMException('The upload was called off.', 'AbortError'))
    signal.addEventListener('abort', () => request.abort(), {once: true})
    request.send(bundle)
  })
}

function problem(request: XMLHttpRequest): Problem {
  try {
    return JSON.parse(request.responseText) as Problem
  } catch {
    return {type: 'about:blank', title: request.statusText, status: request.status, detail: `The server answered ${request.status}.`}
  }
}
