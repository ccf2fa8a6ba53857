import type {PartsAnswer} from './partsanswer.svelte'

// Turn is a message and its answer.
export interface Turn {
  message: string
  answer: PartsAnswer
}

export interface Message {
  role: 'user' | 'assistant'
  content: string
}

// messagesOf are the turns as they are sent along. A turn that got a default or no answer is left out, so that the model
// does not take it for its own words.
export function messagesOf(turns: readonly Turn[], next: string): Message[] {
  const before = turns.filter(({answer}) => answer.text !== '' && !(answer.ending?.kind === 'whole' && answer.ending.answer.default))
  return [
    ...before.flatMap(({message, answer}): Message[] => [
      {role: 'user', content: message},
      {role: 'assistant', content: answer.text},
    ]),
    {role: 'user', content: next},
  ]
}
