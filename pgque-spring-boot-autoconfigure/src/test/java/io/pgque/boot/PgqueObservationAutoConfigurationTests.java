package io.pgque.boot;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.tck.TestObservationRegistry;
import io.micrometer.observation.tck.TestObservationRegistryAssert;
import io.micrometer.tracing.BaggageInScope;
import io.micrometer.tracing.Span;
import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.handler.DefaultTracingObservationHandler;
import io.micrometer.tracing.handler.PropagatingReceiverTracingObservationHandler;
import io.micrometer.tracing.handler.PropagatingSenderTracingObservationHandler;
import io.micrometer.tracing.otel.bridge.OtelBaggageManager;
import io.micrometer.tracing.otel.bridge.OtelCurrentTraceContext;
import io.micrometer.tracing.otel.bridge.OtelPropagator;
import io.micrometer.tracing.otel.bridge.OtelTracer;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.pgque.annotation.PgqueListener;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueTemplate;
import io.pgque.listener.FailureAction;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageInterceptor;
import io.pgque.observation.MdcHandlingObserver;
import io.pgque.observation.ObservingHandlingObserver;
import io.pgque.observation.ObservingSendObserver;
import io.pgque.support.ReceivedMessage;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.MDC;

import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Tests for {@link PgqueObservationAutoConfiguration}.
 */
@PgqueDatabase
@ExtendWith(OutputCaptureExtension.class)
class PgqueObservationAutoConfigurationTests {

	private final ApplicationContextRunner runner;

	PgqueObservationAutoConfigurationTests(TestDatabase database) {
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, TransactionAutoConfiguration.class,
					JacksonAutoConfiguration.class, PgqueSchemaAutoConfiguration.class, PgqueAutoConfiguration.class,
					PgqueListenerAutoConfiguration.class, PgqueTickerAutoConfiguration.class,
					PgqueObservationAutoConfiguration.class))
			.withPropertyValues("pgque.listener.retry.delay=10ms", "pgque.ticker.retry-interval=20ms")
			.withPropertyValues(database.springProperties());
	}

	@Test
	void sendsAreObserved() {
		TestObservationRegistry registry = TestObservationRegistry.create();
		this.runner.withBean(ObservationRegistry.class, () -> registry).run((context) -> {
			context.getBean(PgqueClient.class).createQueue("sends");
			PgqueTemplate template = context.getBean(PgqueTemplate.class);
			long id = template.send("sends", "t", "x");
			TestObservationRegistryAssert.assertThat(registry)
				.hasNumberOfObservationsWithNameEqualTo("pgque.template", 1)
				.hasSingleObservationThat()
				.hasContextualNameEqualTo("sends publish")
				.hasBeenStarted()
				.hasBeenStopped()
				.hasLowCardinalityKeyValue("messaging.system", "pgque")
				.hasLowCardinalityKeyValue("messaging.operation", "publish")
				.hasLowCardinalityKeyValue("messaging.destination.name", "sends")
				.hasLowCardinalityKeyValue("pgque.event.type", "t")
				.hasHighCardinalityKeyValue("messaging.message.id", Long.toString(id));
			registry.clear();
			template.sendBatch("sends", List.of("x", Map.of("a", 1)));
			context.getBean(TransactionTemplate.class)
				.executeWithoutResult((status) -> template.sendLater("sends", "later"));
			TestObservationRegistryAssert.assertThat(registry)
				.hasNumberOfObservationsWithNameEqualTo("pgque.template", 2);
			registry.clear();
			assertThat(org.assertj.core.api.Assertions.catchThrowable(() -> template.send("nowhere", "x"))).isNotNull();
			TestObservationRegistryAssert.assertThat(registry).hasSingleObservationThat().hasBeenStopped().hasError();
			assertThat(registry.getCurrentObservation()).isNull();
		});
	}

	@Test
	void handlingIsObserved() {
		TestObservationRegistry registry = TestObservationRegistry.create();
		this.runner.withBean(ObservationRegistry.class, () -> registry)
			.withBean(Handlers.class, () -> new Handlers(Tracer.NOOP))
			.withPropertyValues("test.queue=handled")
			.run((context) -> {
				long id = context.getBean(PgqueTemplate.class).send("handled", "single", "x");
				Handlers handlers = context.getBean(Handlers.class);
				await().until(() -> handlers.logContexts.size() == 1);
				assertThat(handlers.logContexts.get(0)).containsEntry("pgque.queue", "handled")
					.containsEntry("pgque.consumer", "c")
					.containsEntry("pgque.message", Long.toString(id))
					.containsEntry("pgque.type", "single")
					.containsEntry("pgque.attempt", "1")
					.containsKeys("pgque.listener", "pgque.batch");
				await().untilAsserted(() -> TestObservationRegistryAssert.assertThat(registry)
					.hasObservationWithNameEqualTo("pgque.listener")
					.that()
					.hasContextualNameEqualTo("handled process")
					.hasBeenStopped()
					.hasLowCardinalityKeyValue("messaging.system", "pgque")
					.hasLowCardinalityKeyValue("messaging.operation", "process")
					.hasLowCardinalityKeyValue("messaging.destination.name", "handled")
					.hasLowCardinalityKeyValue("messaging.consumer.group.name", "c")
					.hasLowCardinalityKeyValueWithKey("pgque.listener.id")
					.hasLowCardinalityKeyValue("pgque.event.type", "single")
					.hasHighCardinalityKeyValue("messaging.message.id", Long.toString(id))
					.hasHighCardinalityKeyValue("pgque.delivery.attempt", "1")
					.hasHighCardinalityKeyValueWithKey("pgque.batch.id"));
			});
	}

	/**
	 * The same trace in sender, handler, error handler and retry, also when several
	 * messages are handled together.
	 */
	@Test
	void traceAndBaggageTravelWithTheMessage() {
		Tracing tracing = new Tracing();
		this.runner.withBean(ObservationRegistry.class, () -> tracing.registry)
			.withBean(Handlers.class, () -> new Handlers(tracing.tracer))
			.withBean(PgqueErrorHandler.class, () -> errorHandler(tracing))
			.withBean(PgqueMessageInterceptor.class, () -> new TracingInterceptor(tracing))
			.withPropertyValues("test.queue=traced")
			.run((context) -> {
				PgqueTemplate template = context.getBean(PgqueTemplate.class);
				Handlers handlers = context.getBean(Handlers.class);
				for (String type : List.of("failing", "batch")) {
					handlers.traces.clear();
					tracing.errors.clear();
					Span span = tracing.tracer.nextSpan().name("business").start();
					try (Tracer.SpanInScope scope = tracing.tracer.withSpan(span);
							BaggageInScope baggage = tracing.tracer.createBaggageInScope("tenant", "north")) {
						assertThat(baggage.get()).isEqualTo("north");
						context.getBean(TransactionTemplate.class)
							.executeWithoutResult((status) -> template.sendLater("traced", type, "x"));
					}
					finally {
						span.end();
					}
					String traceId = span.context().traceId();
					await().until(() -> handlers.traces.size() == 2);
					assertThat(handlers.traces).as(type).containsOnly(traceId + " north");
					assertThat(tracing.errors).as(type).containsExactly(traceId);
					await().until(() -> "batch".equals(type) || tracing.interceptions.size() == 4);
					assertThat(tracing.interceptions).as(type).allMatch(traceId::equals);
					tracing.interceptions.clear();
				}
			});
	}

	private static PgqueErrorHandler errorHandler(Tracing tracing) {
		return (failure, message, context) -> {
			Span span = tracing.tracer.currentSpan();
			tracing.errors.add((span != null) ? span.context().traceId() : "none");
			return FailureAction.retry(Duration.ofMillis(10));
		};
	}

	private static final class TracingInterceptor implements PgqueMessageInterceptor {

		private final Tracing tracing;

		TracingInterceptor(Tracing tracing) {
			this.tracing = tracing;
		}

		@Override
		public void before(ReceivedMessage message) {
			note();
		}

		@Override
		public void after(ReceivedMessage message) {
			note();
		}

		private void note() {
			Span span = this.tracing.tracer.currentSpan();
			this.tracing.interceptions.add((span != null) ? span.context().traceId() : "none");
		}

	}

	@Test
	void headersAreReadableByOthersAndKeepTheApplicationsOwn() {
		Tracing tracing = new Tracing();
		// One tick for all of them.
		this.runner.withPropertyValues("pgque.ticker.mode=off")
			.withBean(ObservationRegistry.class, () -> tracing.registry)
			.run((context) -> {
				PgqueClient client = context.getBean(PgqueClient.class);
				client.createQueue("headers");
				client.subscribe("headers", "c");
				PgqueTemplate template = context.getBean(PgqueTemplate.class);
				template.send("headers", (spec) -> spec.payload("x").header("mine", "1"));
				template.send("headers", (spec) -> spec.payload("x").extra4("something else's"));
				template.sendBatch("headers", List.of("x", "y"));
				client.tickAll();
				assertThat(client.receiveBatch("headers", "c", 10, 10_000).rows()).extracting(EventRow::extra4)
					.satisfiesExactly((own) -> assertThat(own).matches("\\{\"mine\":\"1\",\"traceparent\":\"00-.*\"}"),
							(foreign) -> assertThat(foreign).isEqualTo("something else's"),
							(first) -> assertThat(first).matches("\\{\"traceparent\":\"00-.*\"}"),
							(second) -> assertThat(second).matches("\\{\"traceparent\":\"00-.*\"}"));
			});
	}

	@Test
	void failingObservationChangesNothing(CapturedOutput output) {
		ObservationRegistry registry = ObservationRegistry.create();
		registry.observationConfig().observationHandler(new FailingHandler());
		this.runner.withBean(ObservationRegistry.class, () -> registry)
			.withBean(Handlers.class, () -> new Handlers(Tracer.NOOP))
			.withPropertyValues("test.queue=fragile")
			.run((context) -> {
				context.getBean(PgqueTemplate.class).send("fragile", "single", "x");
				context.getBean(PgqueTemplate.class).send("fragile", "failing", "x");
				Handlers handlers = context.getBean(Handlers.class);
				await().until(() -> handlers.logContexts.size() == 1 && handlers.traces.size() == 2);
				assertThat(output.getOut().split("Observing sends failed", -1)).hasSize(2);
				assertThat(output.getOut().split("Observing the handling of messages failed", -1)).hasSize(2);
			});
	}

	@Test
	void canBeSwitchedOffOrMissing() {
		this.runner.withBean(ObservationRegistry.class, TestObservationRegistry::create)
			.withPropertyValues("pgque.listener.observation-enabled=false", "pgque.template.observation-enabled=false")
			.run((context) -> assertThat(context).doesNotHaveBean(ObservingSendObserver.class)
				.doesNotHaveBean(ObservingHandlingObserver.class)
				.doesNotHaveBean(MdcHandlingObserver.class));
		this.runner.run((context) -> assertThat(context).hasNotFailed()
			.doesNotHaveBean(ObservingSendObserver.class)
			.hasSingleBean(MdcHandlingObserver.class));
		this.runner.withClassLoader(new FilteredClassLoader("io.micrometer"))
			.run((context) -> assertThat(context).hasNotFailed().hasSingleBean(PgqueTemplate.class));
	}

	static class Handlers {

		private final Tracer tracer;

		private final List<String> traces = new CopyOnWriteArrayList<>();

		private final List<Map<String, String>> logContexts = new CopyOnWriteArrayList<>();

		Handlers(Tracer tracer) {
			this.tracer = tracer;
		}

		private void note(int attempt) {
			Span span = this.tracer.currentSpan();
			this.traces
				.add((span != null) ? span.context().traceId() + " " + this.tracer.getBaggage("tenant").get() : "none");
			if (attempt == 1) {
				throw new IllegalStateException("the first time");
			}
		}

		@PgqueListener(queue = "${test.queue}", consumer = "c", types = "single")
		void single(String payload) {
			this.logContexts.add(MDC.getCopyOfContextMap());
		}

		@PgqueListener(queue = "${test.queue}", consumer = "c", types = "failing")
		void failing(PgqueMessage message) {
			note(message.deliveryAttempt());
		}

		@PgqueListener(queue = "${test.queue}", consumer = "c", types = "batch")
		void batch(List<PgqueMessage> messages) {
			note(messages.get(0).deliveryAttempt());
		}

	}

	/**
	 * OpenTelemetry behind Micrometer's tracing.
	 */
	private static final class Tracing {

		private final List<String> errors = new CopyOnWriteArrayList<>();

		private final List<String> interceptions = new CopyOnWriteArrayList<>();

		private final Tracer tracer;

		private final ObservationRegistry registry = ObservationRegistry.create();

		Tracing() {
			ContextPropagators propagators = ContextPropagators.create(TextMapPropagator
				.composite(W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance()));
			OpenTelemetrySdk sdk = OpenTelemetrySdk.builder()
				.setTracerProvider(SdkTracerProvider.builder().build())
				.setPropagators(propagators)
				.build();
			io.opentelemetry.api.trace.Tracer otel = sdk.getTracer("test");
			OtelCurrentTraceContext current = new OtelCurrentTraceContext();
			this.tracer = new OtelTracer(otel, current, (event) -> {
			}, new OtelBaggageManager(current, new ArrayList<>(List.of("tenant")), List.of()));
			OtelPropagator propagator = new OtelPropagator(propagators, otel);
			this.registry.observationConfig()
				.observationHandler(new ObservationHandler.FirstMatchingCompositeObservationHandler(
						new PropagatingSenderTracingObservationHandler<>(this.tracer, propagator),
						new PropagatingReceiverTracingObservationHandler<>(this.tracer, propagator),
						new DefaultTracingObservationHandler(this.tracer)));
		}

	}

	/**
	 * Fails at every step.
	 */
	private static final class FailingHandler implements ObservationHandler<Observation.Context> {

		@Override
		public void onStart(Observation.Context context) {
			throw new IllegalStateException("start");
		}

		@Override
		public void onError(Observation.Context context) {
			throw new IllegalStateException("error");
		}

		@Override
		public void onScopeOpened(Observation.Context context) {
			throw new IllegalStateException("scope opened");
		}

		@Override
		public void onScopeClosed(Observation.Context context) {
			throw new IllegalStateException("scope closed");
		}

		@Override
		public void onStop(Observation.Context context) {
			throw new IllegalStateException("stop");
		}

		@Override
		public boolean supportsContext(Observation.Context context) {
			return true;
		}

	}

}
