// Sends mails. Run it with: sluice work mail --batch 100 --silence 30s -- node mails.mjs
import { createInterface } from 'node:readline'

class NoSuchUser extends Error {}

async function send(to, attempt) { // your own work; here it only plays
  if (to === 'nobody') throw new NoSuchUser('there is no such user')
  if (to === 'busy' && attempt === 1) throw new Error('451 try again')
}

const say = (answer) => process.stdout.write(JSON.stringify(answer) + '\n')

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line)
  let sent = job.checkpoint ?? 0
  try {
    for (const to of job.payload.to.slice(sent)) {
      await send(to, job.attempt)
      say({ id: job.id, checkpoint: ++sent }) // the next attempt goes on here; a sign of life, too
    }
    say({ id: job.id, result: { sent } })
  } catch (error) {
    // Dead at once, or tried again after the queue's backoff.
    say({ id: job.id, error: error.message, permanent: error instanceof NoSuchUser })
  }
}
