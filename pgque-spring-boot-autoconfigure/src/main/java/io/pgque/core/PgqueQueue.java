package io.pgque.core;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

import org.springframework.util.Assert;

/**
 * The definition of a log queue. A bean of this type is created, or brought to the stated
 * settings, when the application starts. What is not stated stays as it is.
 *
 * @since 0.1.0
 */
public final class PgqueQueue {

	private final String name;

	private final Map<String, String> settings;

	private PgqueQueue(String name, Map<String, String> settings) {
		this.name = name;
		this.settings = Collections.unmodifiableMap(new LinkedHashMap<>(settings));
	}

	/**
	 * Begin the definition of a queue.
	 * @param name the queue name, at most 57 bytes of UTF-8
	 * @return a builder
	 */
	public static Builder named(String name) {
		return new Builder(PgqueNames.requireQueue(name));
	}

	/**
	 * Return the queue name.
	 * @return the queue name
	 */
	public String getName() {
		return this.name;
	}

	/**
	 * Return the stated settings by the names that the engine gives them.
	 * @return the settings, unmodifiable
	 */
	public Map<String, String> getSettings() {
		return this.settings;
	}

	/**
	 * Return a definition of this queue with settings of another one as well, which win.
	 * @param other a definition whose settings are taken; its name does not matter
	 * @return the definition
	 */
	public PgqueQueue withSettingsOf(PgqueQueue other) {
		Map<String, String> all = new LinkedHashMap<>(this.settings);
		all.putAll(other.settings);
		return new PgqueQueue(this.name, all);
	}

	@Override
	public String toString() {
		return "PgqueQueue[" + this.name + " " + this.settings + "]";
	}

	/**
	 * Builds a {@link PgqueQueue}.
	 */
	public static final class Builder {

		private final String name;

		private final Map<String, String> settings = new LinkedHashMap<>();

		private Builder(String name) {
			this.name = name;
		}

		/**
		 * Set how often an event is retried before it becomes a dead letter.
		 * @param maxRetries the number of retries, 0 for none
		 * @return this
		 */
		public Builder maxRetries(int maxRetries) {
			Assert.isTrue(maxRetries >= 0, "maxRetries must not be negative");
			return set("max_retries", Integer.toString(maxRetries));
		}

		/**
		 * Set the age of the previous tick at which the public ticker function takes the
		 * next one. PgQue's own ticker does not wait for it.
		 * @param lag a positive time
		 * @return this
		 */
		public Builder tickerMaxLag(Duration lag) {
			return set("ticker_max_lag", lag);
		}

		/**
		 * Set the number of events at which the public ticker function takes a tick.
		 * @param count a positive number
		 * @return this
		 */
		public Builder tickerMaxCount(int count) {
			Assert.isTrue(count > 0, "tickerMaxCount must be positive");
			return set("ticker_max_count", Integer.toString(count));
		}

		/**
		 * Set the longest time between two ticks of an idle queue.
		 * @param period a positive time
		 * @return this
		 */
		public Builder tickerIdlePeriod(Duration period) {
			return set("ticker_idle_period", period);
		}

		/**
		 * Set how long events are written to one slot of the log before it moves on to
		 * the next.
		 * @param period a positive time
		 * @return this
		 */
		public Builder rotationPeriod(Duration period) {
			return set("rotation_period", period);
		}

		private Builder set(String parameter, Duration value) {
			Assert.isTrue(!value.isNegative() && !value.isZero(), () -> parameter + " must be positive");
			return set(parameter, value.toString());
		}

		private Builder set(String parameter, String value) {
			this.settings.put(parameter, value);
			return this;
		}

		/**
		 * Finish the definition.
		 * @return the definition
		 */
		public PgqueQueue build() {
			return new PgqueQueue(this.name, this.settings);
		}

	}

}
