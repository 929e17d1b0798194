package io.pgque.sample;

import java.math.BigDecimal;

import jakarta.validation.constraints.DecimalMax;
import jakarta.validation.constraints.Digits;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Positive;
import jakarta.validation.constraints.Size;

/**
 * The body of {@code POST /orders}.
 *
 * @param customer who orders
 * @param total what it costs
 */
record NewOrder(
		@NotBlank @Size(max = 200) @Pattern(regexp = NewOrder.TEXT, message = NewOrder.NOT_TEXT) String customer,
		@NotNull @Positive @DecimalMax("1000000000") @Digits(integer = Integer.MAX_VALUE, fraction = 2,
				message = "must have at most two decimals") BigDecimal total) {

	/**
	 * PostgreSQL's text can't hold the character U+0000, nor half a surrogate pair. We
	 * allow no control character at all.
	 */
	static final String TEXT = "[^\\p{Cntrl}\\p{Cs}]*";

	static final String NOT_TEXT = "must be text without control characters";

}
