package io.pgque.annotation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

import io.pgque.listener.InvalidListenerException;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.BeansException;
import org.springframework.beans.factory.config.BeanExpressionContext;
import org.springframework.beans.factory.config.BeanExpressionResolver;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * Resolves placeholders and expressions in the attributes of an annotation.
 */
final class AnnotationValues {

	private final ConfigurableListableBeanFactory beanFactory;

	private final String description;

	/**
	 * Create a resolver.
	 * @param beanFactory resolves
	 * @param description names the annotated method in errors
	 */
	AnnotationValues(ConfigurableListableBeanFactory beanFactory, String description) {
		this.beanFactory = beanFactory;
		this.description = description;
	}

	/**
	 * Resolve a text.
	 * @return the text, {@code null} when it is empty
	 */
	@Nullable String text(String attribute, String value) {
		Object resolved = resolve(attribute, value);
		if (resolved == null) {
			return null;
		}
		String text = resolved.toString();
		return text.isEmpty() ? null : text;
	}

	/**
	 * Resolve a text that must not be empty.
	 */
	String required(String attribute, String value) {
		String text = text(attribute, value);
		if (text == null) {
			throw new InvalidListenerException(
					"Attribute '" + attribute + "' of listener method " + this.description + " is empty",
					"Give it a value");
		}
		return text;
	}

	/**
	 * Resolve texts, of which each may turn out to be several.
	 */
	List<String> texts(String attribute, String[] values) {
		List<String> texts = new ArrayList<>();
		for (String value : values) {
			flatten(attribute, resolve(attribute, value), texts);
		}
		return texts;
	}

	private void flatten(String attribute, @Nullable Object value, List<String> texts) {
		if (value instanceof Collection<?> collection) {
			collection.forEach((element) -> flatten(attribute, element, texts));
		}
		else if (value instanceof Object[] array) {
			Arrays.asList(array).forEach((element) -> flatten(attribute, element, texts));
		}
		else if (value != null && !value.toString().isEmpty()) {
			texts.add(value.toString());
		}
		else {
			throw new InvalidListenerException(
					"Attribute '" + attribute + "' of listener method " + this.description + " has an empty element",
					"Remove it, or give it a value");
		}
	}

	/**
	 * Resolve a truth value.
	 * @return the value, {@code null} when it is empty
	 */
	@Nullable Boolean truth(String attribute, String value) {
		String text = text(attribute, value);
		if (text == null) {
			return null;
		}
		return switch (text) {
			case "true" -> Boolean.TRUE;
			case "false" -> Boolean.FALSE;
			default -> throw new InvalidListenerException(
					"Attribute '" + attribute + "' of listener method " + this.description + " is '" + text + "'",
					"Set it to true or false");
		};
	}

	/**
	 * Resolve one of several words.
	 * @return the constant that it names, {@code null} when it is empty
	 */
	<E extends Enum<E>> @Nullable E choice(String attribute, String value, Class<E> type) {
		String text = text(attribute, value);
		if (text == null) {
			return null;
		}
		for (E constant : type.getEnumConstants()) {
			if (constant.name().equalsIgnoreCase(text)) {
				return constant;
			}
		}
		throw new InvalidListenerException(
				"Attribute '" + attribute + "' of listener method " + this.description + " is '" + text + "'",
				"Set it to " + Arrays.stream(type.getEnumConstants())
					.map((constant) -> "'" + constant.name().toLowerCase(Locale.ROOT) + "'")
					.collect(Collectors.joining(" or ")));
	}

	/**
	 * Resolve a number of something.
	 * @return the number, at least 1; {@code null} when it is empty
	 */
	@Nullable Integer count(String attribute, String value) {
		String text = text(attribute, value);
		if (text == null) {
			return null;
		}
		try {
			int number = Integer.parseInt(text.strip());
			if (number > 0) {
				return number;
			}
		}
		catch (NumberFormatException ex) {
			throw notACount(attribute, text, ex);
		}
		throw notACount(attribute, text, null);
	}

	private InvalidListenerException notACount(String attribute, String text, @Nullable Exception cause) {
		return new InvalidListenerException(
				"Attribute '" + attribute + "' of listener method " + this.description + " is '" + text + "'",
				"Set it to a number, at least 1", cause);
	}

	/**
	 * Resolve a bean, given by its name or by an expression.
	 * @return the bean, {@code null} when the attribute is empty
	 */
	<T> @Nullable T bean(String attribute, String value, Class<T> type) {
		Object resolved = resolve(attribute, value);
		if (type.isInstance(resolved)) {
			return type.cast(resolved);
		}
		if (resolved == null || resolved.toString().isEmpty()) {
			return null;
		}
		try {
			return this.beanFactory.getBean(resolved.toString(), type);
		}
		catch (BeansException ex) {
			throw new InvalidListenerException("Attribute '" + attribute + "' of listener method " + this.description
					+ " is '" + resolved + "', which gives no " + type.getSimpleName(), "Name a bean of this type", ex);
		}
	}

	private @Nullable Object resolve(String attribute, String value) {
		if (value.isEmpty()) {
			return null;
		}
		try {
			String text = this.beanFactory.resolveEmbeddedValue(value);
			BeanExpressionResolver expressions = this.beanFactory.getBeanExpressionResolver();
			return (expressions != null) ? expressions.evaluate(text, new BeanExpressionContext(this.beanFactory, null))
					: text;
		}
		catch (BeansException | IllegalArgumentException ex) {
			throw new InvalidListenerException(
					"Attribute '" + attribute + "' of listener method " + this.description + " is '" + value
							+ "', which can't be resolved: " + ex.getMessage(),
					"Define what it refers to, or give it another value", ex);
		}
	}

}
