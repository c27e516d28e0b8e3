/** A queue of one: whoever is at its head runs (M12). */
export class Exclusive {
	#taken = false;
	#queue: (() => void)[] = [];

	/** Whether a newcomer has to wait. */
	get busy(): boolean {
		return this.#taken;
	}

	/** Waits for the turn; false if the signal came first. */
	enter(signal: AbortSignal): Promise<boolean> {
		if (signal.aborted) return Promise.resolve(false);
		if (!this.#taken) {
			this.#taken = true;
			return Promise.resolve(true);
		}
		return new Promise(resolve => {
			const turn = () => {
				signal.removeEventListener("abort", leave);
				resolve(true);
			};
			const leave = () => {
				this.#queue.splice(this.#queue.indexOf(turn), 1);
				resolve(false);
			};
			signal.addEventListener("abort", leave, { once: true });
			this.#queue.push(turn);
		});
	}

	/** Gives the turn to the next. */
	leave(): void {
		const next = this.#queue.shift();
		if (next) next();
		else this.#taken = false;
	}
}
