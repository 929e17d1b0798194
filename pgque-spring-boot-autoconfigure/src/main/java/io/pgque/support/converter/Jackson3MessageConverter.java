package io.pgque.support.converter;

import java.lang.reflect.Type;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.cfg.DateTimeFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * Converts objects with Jackson 3. Whatever the mapper's settings, dates and durations
 * are written in ISO 8601 and unknown fields are ignored, so that both Jackson
 * generations understand each other.
 *
 * @since 0.1.0
 */
public class Jackson3MessageConverter extends AbstractTextMessageConverter {

	private final JsonMapper mapper;

	/**
	 * Creates a converter with a mapper derived from an application's.
	 * @param mapper the mapper
	 */
	public Jackson3MessageConverter(JsonMapper mapper) {
		this.mapper = mapper.rebuild()
			.disable(DateTimeFeature.WRITE_DATES_AS_TIMESTAMPS)
			.disable(DateTimeFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
			.disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
			.build();
	}

	@Override
	protected String write(Object payload) {
		return this.mapper.writeValueAsString(payload);
	}

	@Override
	protected @Nullable Object read(String text, Type targetType) {
		return this.mapper.readValue(text, this.mapper.constructType(targetType));
	}

}
