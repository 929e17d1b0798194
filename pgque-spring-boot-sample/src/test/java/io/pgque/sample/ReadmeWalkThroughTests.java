package io.pgque.sample;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.web.client.RestClient;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Does what README tells its reader to do, on a sample that has just started: each call
 * must print what README says.
 */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "spring.main.banner-mode=off")
class ReadmeWalkThroughTests {

	private static final String PROMPT = "$ curl -s ";

	@LocalServerPort
	private int port;

	@Test
	void callsPrintWhatReadmeSays() throws IOException {
		List<Call> calls = Call.parse(Files.readAllLines(Path.of("../README.md")));
		assertThat(calls).hasSizeGreaterThanOrEqualTo(3);
		RestClient http = RestClient.builder().defaultStatusHandler((status) -> true, (request, response) -> {
		}).baseUrl("http://localhost:" + this.port).build();
		for (Call call : calls) {
			if (call.method() == HttpMethod.GET) {
				// The reader takes a moment to type it.
				Awaitility.await()
					.atMost(Duration.ofMinutes(2))
					.untilAsserted(() -> assertThat(call.send(http)).as(call.path()).isEqualTo(call.output()));
			}
			else {
				assertThat(call.send(http)).as(call.path()).isEqualTo(call.output());
			}
		}
	}

	/**
	 * A call of curl in README.
	 *
	 * @param method the method
	 * @param path what follows the port
	 * @param body the body, may be empty
	 * @param output what README says it prints
	 */
	record Call(HttpMethod method, String path, String body, String output) {

		private static final Pattern METHOD = Pattern.compile("-X (\\w+)");

		private static final Pattern PATH = Pattern.compile("localhost:8080(/[^ ']*)");

		private static final Pattern BODY = Pattern.compile("-d '([^']*)'");

		static List<Call> parse(List<String> lines) {
			List<Call> calls = new ArrayList<>();
			for (int i = 0; i < lines.size(); i++) {
				String line = lines.get(i);
				if (line.startsWith(PROMPT)) {
					String body = find(BODY, line, "");
					String method = find(METHOD, line, body.isEmpty() ? "GET" : "POST");
					calls.add(new Call(HttpMethod.valueOf(method), find(PATH, line, ""), body, lines.get(i + 1)));
				}
			}
			return calls;
		}

		private static String find(Pattern pattern, String line, String otherwise) {
			return pattern.matcher(line).results().map((result) -> result.group(1)).findFirst().orElse(otherwise);
		}

		String send(RestClient http) {
			RestClient.RequestBodySpec request = http.method(this.method).uri(this.path);
			if (!this.body.isEmpty()) {
				request.header(HttpHeaders.CONTENT_TYPE, "application/json").body(this.body);
			}
			return request.retrieve().body(String.class);
		}

	}

}
