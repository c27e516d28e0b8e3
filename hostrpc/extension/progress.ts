/**
 * What a running tool reports, made into what is new. omp's tools report all they have so far each
 * time; sending that on would cost the square of the output.
 */
type Content = readonly ({ type: string; text?: string } | null)[];

/** Between two messages of one call. */
export const progressPause = 100;

export class Progress {
	#said = "";
	#latest = "";
	#timer: Timer | undefined;

	constructor(private readonly send: (content: unknown[]) => void) {}

	/** Takes a partial result. */
	update(content: Content | undefined): void {
		this.#latest = (Array.isArray(content) ? content : []).map((block: Content[number]) => (block?.type === "text" ? (block.text ?? "") : "")).join("");
		if (this.#timer) return;
		this.#timer = setTimeout(() => {
			this.#timer = undefined;
			this.#flush();
		}, progressPause);
		this.#timer.unref?.();
	}

	#flush(): void {
		const { text, said } = fresh(this.#said, this.#latest);
		this.#said = said;
		if (text !== "") this.send([{ type: "text", text }]);
	}

	/** Nothing is sent any more: the result is on its way. */
	end(): void {
		clearTimeout(this.#timer);
	}
}

/** What is new in `latest`; all of it where it does not continue what was said. */
export function fresh(said: string, latest: string): { text: string; said: string } {
	return { text: latest.startsWith(said) ? latest.slice(said.length) : latest, said: latest };
}
