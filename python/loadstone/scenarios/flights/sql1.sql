select count(*) from flights
