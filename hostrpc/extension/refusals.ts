/**
 * Calls that never ran, which no card shows: the name is not there, or the arguments are not what the
 * tool takes. The operator is told of them all the same, at most once a second.
 */
const pause = 1_000;
/** Characters of a caller's text that are shown. */
const most = 160;

export class Refusals {
	#more = 0;
	#timer: Timer | undefined;

	constructor(private readonly say: (text: string) => void) {}

	refused(name: string, why: string): void {
		if (this.#timer) {
			this.#more++;
			return;
		}
		this.say(`a2mcp: a call of ${shown(name)} was refused: ${shown(why)}`);
		this.#timer = setTimeout(() => this.#rest(), pause);
		this.#timer.unref?.();
	}

	#rest(): void {
		this.#timer = undefined;
		if (this.#more > 0) this.say(`a2mcp: ${this.#more} more calls were refused`);
		this.#more = 0;
	}
}

/** A caller's text on one line, with nothing in it that moves a cursor (F4). */
function shown(text: string): string {
	const line = text.slice(0, 2 * most).trim().replace(/\s+/g, " ");
	const plain = line.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, c => `\\u{${c.codePointAt(0)?.toString(16)}}`);
	return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}
