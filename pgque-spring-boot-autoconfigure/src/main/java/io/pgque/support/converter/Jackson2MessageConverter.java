package io.pgque.support.converter;

import java.lang.reflect.Type;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import org.jspecify.annotations.Nullable;

/**
 * Converts objects with Jackson 2. Whatever the mapper's settings, dates and durations
 * are written in ISO 8601 and unknown fields are ignored, so that both Jackson
 * generations understand each other.
 *
 * @since 0.1.0
 */
public class Jackson2MessageConverter extends AbstractTextMessageConverter {

	private final ObjectMapper mapper;

	/**
	 * Creates a converter with a mapper of its own, which writes what Jackson 3 writes by
	 * default and knows the modules on the class path.
	 */
	public Jackson2MessageConverter() {
		this(JsonMapper.builder()
			.findAndAddModules()
			.enable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
			.enable(MapperFeature.SORT_CREATOR_PROPERTIES_BY_DECLARATION_ORDER)
			.enable(SerializationFeature.WRITE_ENUMS_USING_TO_STRING)
			.enable(DeserializationFeature.READ_ENUMS_USING_TO_STRING)
			.enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
			.enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
			.disable(SerializationFeature.FAIL_ON_EMPTY_BEANS)
			.build());
	}

	/**
	 * Creates a converter with a copy of an application's mapper.
	 * @param mapper the mapper
	 */
	public Jackson2MessageConverter(ObjectMapper mapper) {
		this.mapper = mapper.copy()
			.disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
			.disable(SerializationFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
			.disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
	}

	@Override
	protected String write(Object payload) throws Exception {
		return this.mapper.writeValueAsString(payload);
	}

	@Override
	protected @Nullable Object read(String text, Type targetType) throws Exception {
		return this.mapper.readValue(text, this.mapper.constructType(targetType));
	}

}
