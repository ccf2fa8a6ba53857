export interface Notice {
  id: number
  kind: 'done' | 'failed'
  text: string
}

const shownMs = 6000
const most = 4

// Notices say what became of what a person did. Failures stay until they are closed.
export class Notices {
  list = $state.raw<readonly Notice[]>([])
  #next = 1

  done(text: string) {
    const notice = this.#add('done', text)
    setTimeout(() => this.close(notice.id), shownMs)
  }

  failed(err: unknown) {
    this.#add('failed', err instanceof Error ? err.message : String(err))
  }

  close(id: number) {
    this.list = this.list.filter((notice) => notice.id !== id)
  }

  #add(kind: Notice['kind'], text: string): Notice {
    const notice = {id: this.#next++, kind, text}
    this.list = [...this.list, notice].slice(-most)
    return notice
  }
}
