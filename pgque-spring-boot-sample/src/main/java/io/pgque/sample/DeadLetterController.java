package io.pgque.sample;

import java.util.List;

import io.pgque.PgqueException;
import io.pgque.core.DeadLetter;
import io.pgque.core.PgqueAdminOperations;
import io.pgque.core.PgqueDeadLetterOperations;
import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import org.jspecify.annotations.Nullable;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/**
 * Events that a consumer gave up on, for a human to look at and to replay.
 */
@RestController
@RequestMapping("/dead-letters")
class DeadLetterController {

	/** The SQLSTATE of everything that the queues' engine itself says no to. */
	private static final String REFUSED = "P0001";

	private final PgqueDeadLetterOperations deadLetters;

	DeadLetterController(PgqueAdminOperations pgque) {
		this.deadLetters = pgque.deadLetters();
	}

	/**
	 * The newest first.
	 */
	@GetMapping
	List<Entry> list(@RequestParam(defaultValue = "1000") @Min(1) @Max(10_000) int limit) {
		return this.deadLetters.inspectAll(limit).stream().map(Entry::from).toList();
	}

	/**
	 * Deliver an event again, to the consumer that failed and to no other. Worth doing
	 * once the reason is gone.
	 */
	@PostMapping("/{id}/replay")
	Replayed replay(@PathVariable long id) {
		try {
			return new Replayed(id, this.deadLetters.replay(id));
		}
		catch (PgqueException ex) {
			if (REFUSED.equals(ex.getSqlState())) {
				throw new ResponseStatusException(HttpStatus.NOT_FOUND, ex.getProblem(), ex);
			}
			throw ex;
		}
	}

	/**
	 * A dead letter as the API shows it.
	 *
	 * @param id the number by which it is replayed
	 * @param queue the queue
	 * @param consumer the consumer that failed; the others are done with the event
	 * @param reason why it failed the last time
	 * @param payload the event, exactly as it was sent
	 */
	record Entry(long id, String queue, String consumer, @Nullable String reason, @Nullable String payload) {

		static Entry from(DeadLetter letter) {
			return new Entry(letter.id(), letter.queue(), letter.consumer(), letter.reason(), letter.payload());
		}

	}

	/**
	 * The answer to a replay.
	 *
	 * @param id the dead letter that is no longer one
	 * @param messageId the event that is on its way again
	 */
	record Replayed(long id, long messageId) {
	}

}
