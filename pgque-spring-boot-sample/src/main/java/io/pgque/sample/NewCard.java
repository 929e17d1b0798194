package io.pgque.sample;

import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Size;

/**
 * The body of {@code PUT /orders/{id}/card}.
 *
 * @param card the card to use from now on
 */
record NewCard(@NotBlank @Size(max = 200) @Pattern(regexp = NewOrder.TEXT, message = NewOrder.NOT_TEXT) String card) {

}
