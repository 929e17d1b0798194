package io.pgque.sample;

import java.net.URI;

import jakarta.validation.Valid;

import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * Orders over HTTP.
 */
@RestController
@RequestMapping("/orders")
class OrderController {

	private final OrderService orders;

	OrderController(OrderService orders) {
		this.orders = orders;
	}

	@PostMapping
	ResponseEntity<Order> place(@Valid @RequestBody NewOrder order) {
		Order placed = this.orders.place(order.customer(), order.total());
		return ResponseEntity.created(URI.create("/orders/" + placed.id())).body(placed);
	}

	@GetMapping("/{id}")
	Order show(@PathVariable long id) {
		return this.orders.find(id);
	}

	@PutMapping("/{id}/card")
	Order changeCard(@PathVariable long id, @Valid @RequestBody NewCard card) {
		return this.orders.changeCard(id, card.card());
	}

}
