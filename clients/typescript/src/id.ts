/** IdMaker makes ids of jobs: UUIDs of version 7, each larger than the one before. */
export class IdMaker {
  #last = 0n;

  /** next returns a new id, of the time `at` in milliseconds. */
  next(at: number = Date.now()): string {
    // 48 bits of milliseconds, then 12 bits that count within a millisecond (RFC 9562, section 6.2).
    let ticks = BigInt(Math.floor(at)) << 12n;
    if (ticks <= this.#last) {
      ticks = this.#last + 1n;
    }
    this.#last = ticks;
    const time = (ticks >> 12n).toString(16).padStart(12, "0");
    const count = (ticks & 0xfffn).toString(16).padStart(3, "0");
    const random = randomHex(8);
    const variant = ((Number.parseInt(random.slice(0, 2), 16) & 0x3f) | 0x80).toString(16);
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${variant}${random.slice(2, 4)}-${random.slice(4)}`;
  }
}

/** randomHex returns random bytes as hexadecimal digits. */
export function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** isId reports whether a value is the id of a job. */
export function isId(value: unknown): value is string {
  return typeof value === "string" && form.test(value);
}
