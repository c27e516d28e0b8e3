/**
 * Changes of the host that can be taken back. Arming and restoring are each one synchronous run over
 * a list of them, so nothing else of the host ever sees half of it (D6).
 */
export interface Change {
	readonly name: string;
	make(): void;
	takeBack(): void;
}

/**
 * Makes all, or none: when one cannot be made, it and those before it are taken back in reverse order.
 * Those in `standing` were made before and stay: nothing may be let through because a repeat went wrong.
 */
export function makeAll(changes: readonly Change[], standing: readonly Change[] = []): void {
	const made: Change[] = [];
	for (const change of changes) {
		if (!standing.includes(change)) made.push(change);
		try {
			change.make();
		} catch (error) {
			undo(made);
			throw new Error(`${change.name}: ${text(error)}`);
		}
	}
}

/** Takes all back in reverse order, or none: when one cannot be, it and those before it are made again. */
export function takeBackAll(changes: readonly Change[]): void {
	const undone: Change[] = [];
	for (const change of changes.toReversed()) {
		undone.push(change);
		try {
			change.takeBack();
		} catch (error) {
			for (const again of undone.toReversed()) quietly(() => again.make());
			throw new Error(`${change.name}: ${text(error)}`);
		}
	}
}

/** Takes back what can be. */
export function undo(made: readonly Change[]): void {
	for (const change of made.toReversed()) quietly(() => change.takeBack());
}

/** What fails here has failed for the reason that is being reported already. */
function quietly(act: () => void): void {
	try {
		act();
	} catch {}
}

export function text(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
