package io.pgque.sample;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;

import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/**
 * Many orders at one request.
 */
@RestController
class LoadController {

	private final LoadGenerator generator;

	LoadController(LoadGenerator generator) {
		this.generator = generator;
	}

	/**
	 * Answers at once; the log reports the progress, and {@code GET /stats} the result.
	 */
	@PostMapping("/load")
	@ResponseStatus(HttpStatus.ACCEPTED)
	Load load(@RequestParam @Min(1) @Max(1_000_000) int orders) {
		this.generator.start(orders);
		return new Load(orders, orders / LoadGenerator.DECLINED_EVERY);
	}

	/**
	 * The answer.
	 *
	 * @param orders how many orders are being placed
	 * @param declined how many of them will be declined
	 */
	record Load(int orders, int declined) {
	}

}
