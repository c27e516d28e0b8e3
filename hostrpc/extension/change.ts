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
 * Makes all, or none: when one cannot be made, those before it are taken back in reverse order, but for
 * those that were made already.
 */
export function makeAll(changes: readonly Change[], already: readonly Change[] = []): void {
	const made: Change[] = [];
	for (const change of changes) {
		try {
			change.make();
			made.push(change);
		} catch (error) {
			undo(made.filter(one => !already.includes(one)));
			throw new Error(`${change.name}: ${text(error)}`);
		}
	}
}

/** Takes all back in reverse order, or none: when one cannot be, those before it are made again. */
export function takeBackAll(changes: readonly Change[]): void {
	const undone: Change[] = [];
	for (const change of changes.toReversed()) {
		try {
			change.takeBack();
			undone.push(change);
		} catch (error) {
			for (const again of undone.toReversed()) quietly(() => again.make());
			throw new Error(`${change.name}: ${text(error)}`);
		}
	}
}

function undo(made: Change[]): void {
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
