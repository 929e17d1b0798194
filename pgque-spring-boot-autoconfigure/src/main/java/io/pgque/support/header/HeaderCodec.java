package io.pgque.support.header;

import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import org.jspecify.annotations.Nullable;

/**
 * Headers on the wire: a flat JSON object of strings, which clients in any language can
 * read.
 *
 * @since 0.1.0
 */
public final class HeaderCodec {

	private static final JsonFactory JSON = new JsonFactory();

	private HeaderCodec() {
	}

	/**
	 * Write headers as JSON.
	 * @param headers the headers
	 * @return the JSON object, {@code null} when there are no headers
	 */
	public static @Nullable String encode(Map<String, String> headers) {
		if (headers.isEmpty()) {
			return null;
		}
		StringWriter text = new StringWriter();
		try (JsonGenerator json = JSON.createGenerator(text)) {
			json.writeStartObject();
			for (Map.Entry<String, String> header : headers.entrySet()) {
				json.writeStringField(header.getKey(), header.getValue());
			}
			json.writeEndObject();
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
		return text.toString();
	}

	/**
	 * Read headers from JSON. Numbers and booleans are taken as text; {@code null} and
	 * nested values are left out. A column that holds something other than a JSON object
	 * belongs to somebody else and has no headers: it must never keep a message from
	 * being handled.
	 * @param text the column's value
	 * @return the headers, unmodifiable
	 */
	public static Map<String, String> decode(@Nullable String text) {
		if (text == null || text.isEmpty()) {
			return Collections.emptyMap();
		}
		Map<String, String> headers = new LinkedHashMap<>();
		try (JsonParser json = JSON.createParser(text)) {
			if (json.nextToken() != JsonToken.START_OBJECT) {
				return Collections.emptyMap();
			}
			while (json.nextToken() == JsonToken.FIELD_NAME) {
				String name = json.currentName();
				JsonToken value = json.nextToken();
				if (value.isScalarValue() && value != JsonToken.VALUE_NULL) {
					headers.put(name, json.getText());
				}
				else {
					json.skipChildren();
				}
			}
		}
		catch (IOException ex) {
			return Collections.emptyMap();
		}
		return Collections.unmodifiableMap(headers);
	}

}
